package node

import "strings"

// expand replaces $(NAME) by the variable's value, as Kubernetes does in command, args and env values: $$ is a
// dollar, and a reference to an unknown name stays as it is.
func expand(text string, variables map[string]string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(text[i+2:], ')')
			if end < 0 {
				out.WriteByte('$')
				continue
			}
			name := text[i+2 : i+2+end]
			if value, ok := variables[name]; ok {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			i += end + 2
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// placeholder is {{args.name}}, with spaces allowed inside the braces as in Argo.
var placeholder = regexp.MustCompile(`\{\{\s*args\.([^\s{}]+)\s*\}\}`)

// errSameKey says that arguments make two entries of a map one.
var errSameKey = errors.New("with its arguments this key is one that is there already")

// Placeholders lists the arguments that a metric uses, each once, in a fixed order.
func Placeholders(m v1alpha1.Metric) []string {
	var names []string
	seen := map[string]bool{}
	note := func(s string) (string, error) {
		for _, match := range placeholder.FindAllStringSubmatch(s, -1) {
			if !seen[match[1]] {
				seen[match[1]] = true
				names = append(names, match[1])
			}
		}
		return s, nil
	}
	tree, err := decode(m)
	if err != nil {
		return nil
	}
	if _, err := walk(tree, note); err != nil {
		return nil
	}
	return names
}

// Substitute puts the values of arguments into a metric, as data: into each string
// after decoding, so that no value can change the structure around it. Where a
// string is code the value can't change the code's structure either:
//
//   - inside a quoted string of a query or of a condition it is escaped, or refused
//     where it would end it and the language has no sure escapes (see grammars);
//   - elsewhere in a query it may be any text with closed quotes, such as 5m;
//   - elsewhere in a condition it is one literal (a number, true, null, a JSON list),
//     unless the condition is the placeholder and nothing else.
//
// Inside a quoted string with no escapes (in back quotes, or CEL's r"…") a value
// that would end it is refused. In a query of Graphite a value stays one parameter's; in
// one of Datadog it stays within the braces that it stands in. In a web metric it stays
// one parameter of the URL's query, inside one string of a JSON body, and one name in the
// jsonPath.
// Inside quotes of an expression of CloudWatch a value with quotes is refused.
// An error names the field and the argument, never the value.
func Substitute(m v1alpha1.Metric, values map[string]string) (v1alpha1.Metric, error) {
	out := *m.DeepCopy()
	success, err := inCode(conditionLexer(m), m.SuccessCondition, values, true)
	if err != nil {
		return m, fmt.Errorf("successCondition: %w", err)
	}
	failure, err := inCode(conditionLexer(m), m.FailureCondition, values, true)
	if err != nil {
		return m, fmt.Errorf("failureCondition: %w", err)
	}
	samples, err := substituteSamples(m, values)
	if err != nil {
		return m, fmt.Errorf("minSamples: %w", err)
	}
	out.SuccessCondition, out.FailureCondition, out.MinSamples = "", "", nil
	queries, err := takeQueries(&out.Provider, values)
	if err != nil {
		return m, fmt.Errorf("provider.%w", err)
	}
	var web webText
	if p := out.Provider.Web; p != nil {
		if web, err = takeWeb(p, values); err != nil {
			return m, fmt.Errorf("provider.web.%w", err)
		}
	}
	var cloudWatch cloudWatchText
	if p := out.Provider.CloudWatch; p != nil {
		if cloudWatch, err = takeCloudWatch(p, values); err != nil {
			return m, fmt.Errorf("provider.cloudWatch.%w", err)
		}
	}
	if out, err = substituteStrings(out, values); err != nil {
		return m, err
	}
	out.SuccessCondition, out.FailureCondition, out.MinSamples = success, failure, samples
	queries.putInto(&out.Provider)
	if p := out.Provider.Web; p != nil {
		web.putInto(p)
	}
	if p := out.Provider.CloudWatch; p != nil {
		if err := cloudWatch.putInto(p); err != nil {
			return m, err
		}
	}
	return out, nil
}

// substituteSamples puts arguments into the question for the number of samples as into
// the metric's own.
func substituteSamples(m v1alpha1.Metric, values map[string]string) (*v1alpha1.MinSamples, error) {
	if m.MinSamples == nil {
		return nil, nil
	}
	asked, err := Substitute(v1alpha1.Metric{Name: m.Name, Provider: m.MinSamples.Provider}, values)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.MinSamples{Count: m.MinSamples.Count, Provider: asked.Provider}, nil
}

func substituteStrings(m v1alpha1.Metric, values map[string]string) (v1alpha1.Metric, error) {
	tree, err := decode(m)
	if err != nil {
		return m, err
	}
	tree, err = walk(tree, func(s string) (string, error) { return inText(s, values) })
	if err != nil {
		return m, err
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return m, fmt.Errorf("encode metric %q: %w", m.Name, err)
	}
	var out v1alpha1.Metric
	if err := json.Unmarshal(raw, &out); err != nil {
		return m, fmt.Errorf("decode metric %q: %w", m.Name, err)
	}
	return out, nil
}

func decode(m v1alpha1.Metric) (any, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode metric %q: %w", m.Name, err)
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // numbers keep their digits
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode metric %q: %w", m.Name, err)
	}
	return tree, nil
}

// walk applies f to each string value and to each key, maps in the order of their keys.
func walk(tree any, f func(string) (string, error)) (any, error) {
	var err error
	switch v := tree.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			if v[i], err = walk(v[i], f); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if err = walkEntry(v, k, f); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return tree, nil
}

func walkEntry(m map[string]any, key string, f func(string) (string, error)) error {
	value, err := walk(m[key], f)
	if err != nil {
		return err
	}
	name, err := f(key)
	if err != nil {
		return err
	}
	if _, taken := m[name]; taken && name != key {
		return errSameKey
	}
	delete(m, key)
	m[name] = value
	return nil
}

func inText(s string, values map[string]string) (string, error) {
	return replace(s, func(_, name string) (string, error) {
		return lookupArg(values, name)
	})
}

func inCode(lang language, s string, values map[string]string, literals bool) (string, error) {
	if literals && placeholder.FindString(strings.TrimSpace(s)) == strings.TrimSpace(s) {
		return inText(s, values)
	}
	lex := lexer{lang: lang}
	return replace(s, func(before, name string) (string, error) {
		lex.feed(before)
		value, err := lookupArg(values, name)
		if err != nil {
			return "", err
		}
		placed, err := lex.place(value, literals)
		if err != nil {
			return "", fmt.Errorf("args.%s: %w", name, err)
		}
		return placed, nil
	})
}

// replace calls f for each placeholder with the text since the one before it.
func replace(s string, f func(before, name string) (string, error)) (string, error) {
	var b strings.Builder
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(s, -1) {
		before := s[end:at[0]]
		value, err := f(before, s[at[2]:at[3]])
		if err != nil {
			return "", err
		}
		b.WriteString(before)
		b.WriteString(value)
		end = at[1]
	}
	b.WriteString(s[end:])
	return b.String(), nil
}

func lookupArg(values map[string]string, name string) (string, error) {
	value, ok := values[name]
	if !ok {
		return "", fmt.Errorf("args.%s was not resolved", name)
	}
	return value, nil
}

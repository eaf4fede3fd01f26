// Package yamledit changes parts of a YAML or JSON file and leaves every other
// byte as it is: it never parses and prints. Nodes are located by the parser's
// positions and the rules of the syntax, cut out, and replaced by the bytes that
// another version of the file has for them.
//
// PURE: bytes in, bytes out. It imports a parser of YAML and nothing of Pushback.
package yamledit

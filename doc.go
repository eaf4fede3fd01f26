// Package pushback is the root of the project; it holds no code. See README.md
// for what Pushback is, and the packages below it for how it works.
package pushback

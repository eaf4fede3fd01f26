// Package stories holds the end-to-end stories; see main_test.go.
package stories

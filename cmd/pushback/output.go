package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// outputFlag is -o: nothing for people, or json for programs.
type outputFlag string

func (o *outputFlag) register(flags *pflag.FlagSet) {
	flags.VarP(o, "output", "o", `output format: json (default text for people)`)
}

func (o *outputFlag) String() string { return string(*o) }
func (o *outputFlag) Type() string   { return "format" }
func (o *outputFlag) json() bool     { return *o == "json" }

func (o *outputFlag) Set(format string) error {
	if format != "json" {
		return fmt.Errorf("%q is not an output format; the only one is json", format)
	}
	*o = outputFlag(format)
	return nil
}

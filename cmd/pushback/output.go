package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Output formats: none is text for people.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
	formatWide = "wide"
)

// outputFlag is -o.
type outputFlag struct {
	format  string
	formats []string
}

// register adds -o with the formats that the command can print.
func (o *outputFlag) register(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	cmd.Flags().VarP(o, "output", "o", "output format: "+strings.Join(formats, ", ")+" (default text for people)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags only
}

// registerAll adds -o with every format.
func (o *outputFlag) registerAll(cmd *cobra.Command) {
	o.register(cmd, formatJSON, formatYAML, formatWide, formatName)
}

func (o *outputFlag) String() string { return o.format }
func (o *outputFlag) Type() string   { return "format" }
func (o *outputFlag) json() bool     { return o.format == formatJSON }
func (o *outputFlag) wide() bool     { return o.format == formatWide }
func (o *outputFlag) name() bool     { return o.format == formatName }

// Set refuses a format that the command can't print.
func (o *outputFlag) Set(format string) error {
	if !slices.Contains(o.formats, format) {
		return fmt.Errorf("%q is not an output format here; use %s", format, strings.Join(o.formats, ", "))
	}
	o.format = format
	return nil
}

// structured says that programs read the output.
func (o *outputFlag) structured() bool { return o.json() || o.format == formatYAML }

// encode prints a value as JSON or YAML.
func (o *outputFlag) encode(value any) (string, error) {
	if o.json() {
		data, err := json.MarshalIndent(value, "", "  ")
		return string(data) + "\n", err
	}
	data, err := yaml.Marshal(value)
	return string(data), err
}

// separator is what goes between two documents of a stream.
func (o *outputFlag) separator() string {
	switch {
	case o.format == formatYAML:
		return "---\n"
	case o.json(), o.name():
		return ""
	}
	return "\n"
}

// rolloutName is what -o name prints, as kubectl does.
func rolloutName(name string) string { return "rollout.pushback.dev/" + name }

package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// fromEnv sets flags that were not given on the command line from environment
// variables, keyed by flag name. An empty variable counts as not set. A value that
// the flag refuses is an error that names the variable.
func fromEnv(flags *pflag.FlagSet, variables map[string]string) error {
	for flag, variable := range variables {
		value := os.Getenv(variable)
		if value == "" || flags.Changed(flag) {
			continue
		}
		if err := flags.Set(flag, value); err != nil {
			return fmt.Errorf("environment variable %s: %w", variable, err)
		}
	}
	return nil
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/lint"
)

// The formats of lint beside those of all commands.
const (
	formatSARIF  = "sarif"
	formatGitHub = "github"
)

func newLintCommand() *cobra.Command {
	var output outputFlag
	var readyDelay time.Duration
	cmd := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Find what is legal in a Rollout and yet not what was meant",
		Long: `lint reads files or folders (ours or Argo's, plain or kustomize) and finds, without a
cluster, what is legal and yet not what was meant: shares that the pods can't give, metrics
that can't stop anything, queries that look at every version, Services that select nothing.
docs/lint.md has a section for each finding.

Exit code 1 says that there are errors or warnings; notes ask for nothing.`,
		Example: `  pushback lint deploy/
  pushback lint deploy/ -o github    # as annotations of a pull request
  pushback lint deploy/ -o sarif > lint.sarif`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := readManifests(args)
			if err != nil {
				return err
			}
			found := lint.Check(objects, readyDelay)
			if err := printFindings(cmd.OutOrStdout(), found, output); err != nil {
				return err
			}
			serious := 0
			for _, f := range found {
				if f.Severity != lint.Note {
					serious++
				}
			}
			if serious > 0 {
				return fmt.Errorf("%d of %d findings are errors or warnings", serious, len(found))
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&readyDelay, "ready-delay", 5*time.Second, "how long a pod takes to become ready")
	output.register(cmd, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}

func printFindings(out io.Writer, found []lint.Finding, output outputFlag) error {
	if found == nil {
		found = []lint.Finding{}
	}
	switch {
	case output.structured():
		text, err := output.encode(found)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, text)
		return err
	case output.format == formatSARIF:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(sarifOf(found))
	}
	for _, f := range found {
		line := fmt.Sprintf("%s: %s: %s %s: %s; %s [%s]\n", placeOf(f), f.Severity, f.Object, f.Field, f.Reason, f.Mend, f.ID)
		if output.format == formatGitHub {
			line = fmt.Sprintf("::%s file=%s,line=%d,title=%s::%s\n", annotation(f.Severity), escaped(f.File, true), max(f.Line, 1), f.ID,
				escaped(fmt.Sprintf("%s %s: %s; %s", f.Object, f.Field, f.Reason, f.Mend), false))
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return nil
}

func placeOf(f lint.Finding) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// annotation is the workflow command of a severity.
func annotation(s lint.Severity) string {
	if s == lint.Note {
		return "notice"
	}
	return string(s)
}

// escaped is text in a workflow command; properties end at a colon and a comma too.
func escaped(text string, property bool) string {
	r := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	if property {
		r = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	}
	return r.Replace(text)
}

// The parts of SARIF 2.1.0 (OASIS) that a list of findings needs.
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     lint.Severity   `json:"level"` // ours are SARIF's words
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

func sarifOf(found []lint.Finding) sarif {
	run := sarifRun{Tool: sarifTool{Driver: sarifDriver{Name: "pushback lint", InformationURI: "https://github.com/pushback-dev/pushback"}}, Results: []sarifResult{}}
	for _, id := range lint.IDs() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: id})
	}
	for _, f := range found {
		result := sarifResult{RuleID: f.ID, Level: f.Severity, Message: sarifText{Text: fmt.Sprintf("%s %s: %s; %s", f.Object, f.Field, f.Reason, f.Mend)}}
		if f.File != "" {
			at := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{URI: f.File}}}
			if f.Line > 0 {
				at.Physical.Region = &sarifRegion{StartLine: f.Line}
			}
			result.Locations = append(result.Locations, at)
		}
		run.Results = append(run.Results, result)
	}
	return sarif{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

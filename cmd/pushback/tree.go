package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// renderView draws a view.
func renderView(v view, s style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s  %s", v.Namespace, v.Name, s.phase(string(v.Phase)))
	if v.Step != "" {
		fmt.Fprintf(&out, "  step %s  attempt %d", v.Step, v.Attempt)
	}
	out.WriteString("\n")
	if v.Message != "" {
		fmt.Fprintf(&out, "%s\n", s.wrap(v.Message))
	}
	for _, service := range v.Services {
		fmt.Fprintf(&out, "%-8s %s selects %s\n", service.Role, service.Name, orDash(service.Hash))
	}
	if v.Weights != nil && len(v.Services) == 0 {
		fmt.Fprintf(&out, "weights  stable %d  canary %d%s\n", v.Weights.Stable.Weight, v.Weights.Canary.Weight, verifiedText(v.Weights.Verified))
	}
	fmt.Fprintf(&out, "pods     %d of %d available\n", v.Available, v.Desired)
	renderWorkload(&out, v.Workload)
	for _, side := range []struct {
		name    string
		version *v1alpha1.GitVersion
	}{{"stable", v.Stable}, {"current", v.Current}} {
		if side.version != nil {
			fmt.Fprintf(&out, "%-8s %s  %s  %q\n", side.name, side.version.Hash, s.revision(*side.version), side.version.Subject)
		}
	}
	renderSteps(&out, v, s)
	renderVersions(&out, v, s)
	renderLoose(&out, v, s)
	return out.String()
}

// revision is a commit: short, because 40 digits leave no room for its subject.
func (s style) revision(version v1alpha1.GitVersion) string {
	if s.wide {
		return orDash(version.Revision)
	}
	return orDash(version.ShortCommit)
}

// wrap indents a message, and breaks it at words on a terminal.
func (s style) wrap(message string) string {
	const indent = "  "
	if s.width <= 2*len(indent) {
		return indent + message
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(message) {
		if line != "" && printable(line)+1+printable(word) > s.width-len(indent) {
			lines, line = append(lines, indent+line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, indent+line), "\n")
}

func verifiedText(verified *bool) string {
	switch {
	case verified == nil:
		return ""
	case *verified:
		return "  (verified)"
	}
	return "  (not verified yet)"
}

func renderSteps(out *strings.Builder, v view, s style) {
	if len(v.Steps) == 0 {
		return
	}
	out.WriteString("\nSTEPS\n")
	for i, step := range v.Steps {
		fmt.Fprintf(out, "  %s %d %s\n", s.mark(step.State), i+1, step.Text)
	}
}

// renderVersions draws each version with its pods and runs below it.
func renderVersions(out *strings.Builder, v view, s style) {
	if len(v.Versions) == 0 {
		return
	}
	out.WriteString("\nREVISIONS\n")
	for _, version := range v.Versions {
		cells := []string{orDash(version.Revision), version.Hash, version.Role, fmt.Sprintf("%d of %d available", version.Available, version.Pods)}
		if version.Pods == 0 {
			cells[3] = "no pods"
		}
		out.WriteString(row(append(cells, orDash(version.Commit), version.Subject)...))
		nodes := podNodes(version.PodList, s)
		for _, run := range v.Runs {
			if run.Hash == version.Hash {
				nodes = append(nodes, runNode(run, s))
			}
		}
		for _, e := range v.Experiments {
			if e.Hash == version.Hash {
				nodes = append(nodes, experimentNode(e, s))
			}
		}
		renderNodes(out, nodes, s)
	}
}

// node is a child of a tree: a line, and further lines below it.
type node []string

func renderNodes(out *strings.Builder, nodes []node, s style) {
	for i, lines := range nodes {
		first, further := s.branch(i == len(nodes)-1)
		for j, line := range lines {
			lead := first
			if j > 0 {
				lead = further
			}
			out.WriteString(strings.TrimRight("  "+lead+line, " ") + "\n")
		}
	}
}

// podNodes are the pods as an aligned table.
func podNodes(pods []podView, s style) []node {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, pod := range pods {
		fmt.Fprintf(table, "pod %s\t%s\t%s\trestarts %d\t%s\n", pod.Name, pod.Ready, pod.Status, pod.Restarts, s.age(pod.Created))
	}
	_ = table.Flush() // a strings.Builder takes everything
	var out []node
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		if i < len(pods) { // coloured afterwards: escapes would count as width
			status := pods[i].Status
			out = append(out, node{strings.Replace(line, "  "+status+"  ", "  "+s.phase(status)+"  ", 1)})
		}
	}
	return out
}

// shownMeasurements is how many of a metric are shown, the last ones.
const shownMeasurements = 5

func runNode(run runView, s style) node {
	lines := node{joined("run "+run.Name, s.phase(string(run.Phase)), run.Message)}
	for _, metric := range run.Metrics {
		values := metric.Values
		if over := len(values) - shownMeasurements; over > 0 && !s.wide {
			values = append([]string{"..."}, values[over:]...)
		}
		lines = append(lines, "  "+joined(metric.Name, s.phase(string(metric.Phase)), strings.Join(values, "  ")))
	}
	return lines
}

// renderLoose draws the runs of versions that are gone, and the reverts.
func renderLoose(out *strings.Builder, v view, s style) {
	var nodes []node
	for _, run := range v.Runs {
		if !slices.ContainsFunc(v.Versions, func(known versionView) bool { return known.Hash == run.Hash }) {
			nodes = append(nodes, runNode(run, s))
		}
	}
	for _, e := range v.Experiments {
		if !slices.ContainsFunc(v.Versions, func(known versionView) bool { return known.Hash == e.Hash }) {
			nodes = append(nodes, experimentNode(e, s))
		}
	}
	if len(nodes) > 0 {
		out.WriteString("\nRUNS OF OTHER VERSIONS\n")
		renderNodes(out, nodes, s)
	}
	if len(v.Reverts) > 0 {
		out.WriteString("\nREVERTS\n")
	}
	for _, revert := range v.Reverts {
		commit := revert.Commit
		if len(commit) > 7 && !s.wide {
			commit = commit[:7]
		}
		out.WriteString(row(revert.Name, s.phase(string(revert.Phase)), orDash(commit), revert.Message))
	}
}

// row is one indented line.
func row(cells ...string) string { return "  " + joined(cells...) + "\n" }

// joined puts cells beside each other; empty ones take no room.
func joined(cells ...string) string {
	return strings.Join(slices.DeleteFunc(cells, func(cell string) bool { return cell == "" }), "  ")
}

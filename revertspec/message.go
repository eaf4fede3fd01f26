package revertspec

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// Limits of a commit's text, in bytes.
const (
	// MaxTemplate is the longest template.
	MaxTemplate = 4 << 10
	// MaxText is the most that a template may write.
	MaxText = 8 << 10
)

// OwnTrailers is how the trailers begin that machines read. They are written by
// Pushback alone, whatever a template says.
const OwnTrailers = "Pushback-"

// MessageData is what a template of spec.revert.message can use: what the Revert
// object says, and nothing else. Every text is one line.
type MessageData struct {
	// Rollout and GitSync are names of objects.
	Rollout, GitSync MessageObject
	// Rejected and Stable are template hashes.
	Rejected, Stable string
	// Attempt of the rejected version, from 1.
	Attempt int64
	// Reason is Failed, Deadline, Aborted or Error; or Undo, when nothing was rejected
	// and a person wants an earlier version back.
	Reason string
	// Message names the metric, the value and the limit.
	Message string
	// RejectedRevision such as main@sha1:<40 hex>; RejectedSubject is its subject.
	// Both may be empty.
	RejectedRevision, RejectedSubject string
	// AnalysisRun that condemned the version; empty when none did.
	AnalysisRun string
	// Measurements that condemned it, at most 10; none when no metric did.
	Measurements []string
	// RequestedBy is who asked for an undo, as they say; empty otherwise, and when they don't.
	RequestedBy string
	// Undo is the token of an undo; empty otherwise.
	Undo string
	// AbortedAt such as 2026-11-30T12:00:00Z.
	AbortedAt string
}

// MessageObject names an object.
type MessageObject struct{ Namespace, Name string }

// MessageError says why spec.revert.message can't be used.
type MessageError struct{ Problem string }

// Error names the field.
func (e *MessageError) Error() string {
	return "spec.revert.message is no usable Go template: " + e.Problem
}

// CheckMessage says what is wrong with a template, as far as it can be told
// without a revert: it is parsed, and executed for a version that a metric
// condemned and for one of which little is known. Errors are *MessageError.
func CheckMessage(text string) error {
	known := MessageData{
		Rollout: MessageObject{"shop", "web"}, GitSync: MessageObject{"shop", "shop"}, Rejected: "1111111111", Stable: "2222222222",
		Attempt: 2, Reason: "Failed", Message: "metric errors was 0.5, want < 0.01",
		RejectedRevision: "main@sha1:" + strings.Repeat("a", 40), RejectedSubject: "Release v3", AnalysisRun: "web-1111111111-2-1",
		Measurements: []string{"errors 0.48 at 12:00:00", "errors 0.5 at 12:00:10"}, AbortedAt: "2026-11-30T12:00:00Z",
	}
	little := MessageData{Rollout: known.Rollout, GitSync: known.GitSync, Rejected: known.Rejected, Stable: known.Stable,
		Attempt: 1, Reason: "Aborted", AbortedAt: known.AbortedAt}
	for _, sample := range []MessageData{known, little} {
		written, err := ExecuteMessage(text, sample)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(written, "\n") {
			if IsOwnTrailer(line) {
				return &MessageError{fmt.Sprintf("it writes the line %q, and Pushback alone writes what begins with %s: take it out", strings.TrimSpace(line), OwnTrailers)}
			}
		}
	}
	return nil
}

// IsOwnTrailer is true for a line that could be taken for one of ours.
func IsOwnTrailer(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(OwnTrailers) && strings.EqualFold(line[:len(OwnTrailers)], OwnTrailers)
}

// ExecuteMessage writes the text of a commit. Errors are *MessageError.
//
// Whoever may write a GitSync or a Rollout must not be able to hold up or fill
// the controller with a template, so that what could run long or write much is
// refused before it is executed.
func ExecuteMessage(text string, data MessageData) (string, error) {
	if len(text) > MaxTemplate {
		return "", &MessageError{fmt.Sprintf("it is %d bytes long, and %d are allowed", len(text), MaxTemplate)}
	}
	t, err := template.New("message").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", messageError(err)
	}
	for _, defined := range t.Templates() {
		if defined != t {
			return "", &MessageError{"define and block are not available: write it as one template"}
		}
	}
	if t.Tree == nil {
		return "", nil
	}
	if err := allowed(t.Root, false); err != nil {
		return "", err
	}
	out := &limited{}
	if err := t.Execute(out, data); err != nil {
		return "", messageError(err)
	}
	return out.String(), nil
}

func messageError(err error) error {
	return &MessageError{strings.TrimPrefix(err.Error(), "template: ")}
}

// limited stops a template that writes too much.
type limited struct{ strings.Builder }

// Write fails when the text is full.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > MaxText {
		return 0, fmt.Errorf("it writes more than %d bytes", MaxText)
	}
	return l.Builder.Write(p)
}

// functions that make nothing longer than what they are given.
var functions = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice"}

// allowed walks a template. Without calls of templates, loops in loops and
// functions that make long texts, one takes no longer than it is long.
func allowed(node parse.Node, looping bool) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, inner := range n.Nodes {
			if err := allowed(inner, looping); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		return allowedPipe(n.Pipe)
	case *parse.IfNode:
		return allowedBranch(&n.BranchNode, looping)
	case *parse.WithNode:
		return allowedBranch(&n.BranchNode, looping)
	case *parse.RangeNode:
		if looping || !overMeasurements(n.Pipe) {
			return &MessageError{fmt.Sprintf("line %d: range goes over .Measurements, once, and over nothing else", n.Line)}
		}
		return allowedBranch(&n.BranchNode, true)
	case *parse.TemplateNode:
		return &MessageError{fmt.Sprintf("line %d: template is not available", n.Line)}
	}
	return nil
}

func allowedBranch(n *parse.BranchNode, looping bool) error {
	for _, check := range []func() error{
		func() error { return allowedPipe(n.Pipe) },
		func() error { return allowed(n.List, looping) },
		func() error { return allowed(n.ElseList, looping) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func allowedPipe(pipe *parse.PipeNode) error {
	if pipe == nil {
		return nil
	}
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			switch a := argument.(type) {
			case *parse.PipeNode:
				if err := allowedPipe(a); err != nil {
					return err
				}
			case *parse.ChainNode:
				if inner, ok := a.Node.(*parse.PipeNode); ok {
					if err := allowedPipe(inner); err != nil {
						return err
					}
				}
			case *parse.IdentifierNode:
				if !slices.Contains(functions, a.Ident) {
					return &MessageError{fmt.Sprintf("line %d: the function %s is not available: use %s", pipe.Line, a.Ident, strings.Join(functions, ", "))}
				}
			}
		}
	}
	return nil
}

// overMeasurements is true for .Measurements and $.Measurements alone.
func overMeasurements(pipe *parse.PipeNode) bool {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	text := pipe.Cmds[0].Args[0].String()
	return text == ".Measurements" || text == "$.Measurements"
}

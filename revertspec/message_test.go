package revertspec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/revertspec"
)

func TestCheckMessage(t *testing.T) {
	for name, text := range map[string]string{
		"empty":           "",
		"comment":         "{{/* nothing */}}",
		"every variable":  "{{.Rollout.Namespace}}/{{.Rollout.Name}} {{.GitSync.Namespace}}/{{.GitSync.Name}} {{.Rejected}} {{.Stable}} {{.Attempt}} {{.Reason}} {{.Message}} {{.RejectedRevision}} {{.RejectedSubject}} {{.AnalysisRun}} {{.AbortedAt}}",
		"conditions":      `{{if and (gt .Attempt 1) (eq .Reason "Failed")}}again{{else}}{{with .AnalysisRun}}{{.}}{{end}}{{end}}`,
		"measurements":    "{{range .Measurements}}* {{.}}\n{{else}}none{{end}}",
		"numbered":        "{{range $i, $m := $.Measurements}}{{$i}} {{$m}}\n{{end}}",
		"guarded index":   "{{if .Measurements}}{{index .Measurements 0}}{{end}}",
		"a sign-off":      "See the runbook.\n\nSigned-off-by: Bot <bot@example.com>\n",
		"part of a hash":  "{{slice .Rejected 0 7}}",
		"a nested action": "{{len (slice .Rejected 0 7)}}",
	} {
		if err := revertspec.CheckMessage(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct{ text, words string }{
		"not closed":         {"{{", "message:1"},
		"no such variable":   {"{{.Nope}}", "Nope"},
		"no such part":       {"{{.Rollout.UID}}", "UID"},
		"no such function":   {"{{env \"HOME\"}}", "env"},
		"unguarded index":    {"{{index .Measurements 0}}", "index"},
		"too long":           {strings.Repeat("x", revertspec.MaxTemplate+1), "bytes"},
		"writes too much":    {strings.Repeat("{{.RejectedRevision}}", 195), "more than"},
		"printf":             {`{{printf "%1000000d" 1}}`, "printf"},
		"print":              {`{{$a := print .Message .Message}}`, "print"},
		"piped":              {`{{.Message | printf "%s"}}`, "printf"},
		"in a condition":     {`{{if print 1}}{{end}}`, "print"},
		"in a with":          {`{{with (html .Message)}}{{end}}`, "html"},
		"in an else":         {`{{if .Message}}{{else}}{{urlquery .Message}}{{end}}`, "urlquery"},
		"in a loop":          {`{{range .Measurements}}{{js .}}{{end}}`, "js"},
		"in a chain":         {`{{(print .Rollout).Name}}`, "print"},
		"call":               {`{{call .Message}}`, "call"},
		"a long loop":        {`{{range 1000000000000}}{{end}}`, "range"},
		"a loop by variable": {`{{$n := 1000000000000}}{{range $n}}{{end}}`, "range"},
		"a loop by attempt":  {`{{range .Attempt}}{{end}}`, "range"},
		"a loop in a loop":   {`{{range .Measurements}}{{if .}}{{range $.Measurements}}{{end}}{{end}}{{end}}`, "range"},
		"a loop by pipe":     {`{{range (slice .Measurements 0)}}{{end}}`, "range"},
		"define":             {`{{define "x"}}{{end}}`, "define"},
		"block":              {`{{block "x" .}}{{end}}`, "define"},
		"itself":             {`{{template "message" .}}`, "template"},
		"a trailer of ours":  {"text\n\nPushback-Retry: {{.Rejected}}\n", "Pushback-Retry"},
		"in other letters":   {"text\n\n  pushBACK-retry: {{.Rejected}}\n", "pushBACK-retry"},
		"made of two parts":  {"text\n\n{{if .Message}}Push{{end}}{{if .Message}}back-Retry: x{{end}}\n", "Pushback-Retry"},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong *revertspec.MessageError
			err := revertspec.CheckMessage(c.text)
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.words) || !strings.HasPrefix(err.Error(), "spec.revert.message ") {
				t.Errorf("want an error that names the field and %q, got %v", c.words, err)
			}
		})
	}
}

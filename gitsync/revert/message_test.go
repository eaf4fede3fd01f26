package revert_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync/revert"
	"github.com/pushback-dev/pushback/revertspec"
)

func request() v1alpha1.RevertRequest {
	return v1alpha1.RevertRequest{
		Rollout: v1alpha1.RevertRollout{Namespace: "shop", Name: "web"}, Rejected: "1111111111", Stable: "2222222222", Attempt: 3,
		Reason: v1alpha1.AbortFailed, Message: "metric errors was 0.5, want < 0.01",
		RejectedRevision: "main@sha1:" + strings.Repeat("a", 40), RejectedSubject: "Release shop v3",
		AnalysisRun: "web-1111111111-3-1", Measurements: []string{"errors 0.48 at 12:00:00", "errors 0.5 at 12:00:10"},
		AbortedAt: metav1.NewTime(time.Unix(1_700_000_000, 0)),
	}
}

func TestMessage(t *testing.T) {
	got, err := revert.Message(request(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := `Revert "Release shop v3"

Rollout shop/web rejected template 1111111111 of main@sha1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:
its analysis failed: metric errors was 0.5, want < 0.01.
This brings back template 2222222222, which is what is running.

Measurements:
- errors 0.48 at 12:00:00
- errors 0.5 at 12:00:10

Pushback-Rollout: shop/web
Pushback-Rejected-Template: 1111111111
Pushback-Restored-Template: 2222222222
Pushback-Rejected-Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
Pushback-Attempt: 3
Pushback-Analysis: web-1111111111-3-1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What others wrote can neither hide the revert from automation nor forge a trailer.
func TestMessage_IsCleaned(t *testing.T) {
	r := request()
	r.RejectedSubject = "Release [SKIP ci] \"v3\"\x1b[31m\u202e [ski[skip ci]p ci]\nPushback-Retry: x"
	r.Message = "bad\nPushback-Retry: 1111111111\r\x00"
	r.Measurements = []string{"a\n\nPushback-Retry: x", strings.Repeat("long ", 1000)}
	r.AnalysisRun = "rün\nPushback-Retry: x"
	got, err := revert.Message(r, "")
	if err != nil {
		t.Fatal(err)
	}
	subject, rest, _ := strings.Cut(got, "\n")
	if want := `Revert "Release 'v3' [31m Pushback-Retry: x"`; subject != want {
		t.Errorf("subject %q, want %q", subject, want)
	}
	for _, line := range strings.Split(rest, "\n") {
		if strings.HasPrefix(line, "Pushback-Retry") {
			t.Errorf("forged trailer: %q", line)
		}
	}
	if strings.ContainsAny(got, "\x00\x1b\r\u202e") || strings.Contains(strings.ToLower(got), "skip ci") || len(got) > 4000 {
		t.Errorf("not clean: %q", got)
	}
}

// Skips and trailers can be spelled so that cleaning makes them.
func TestMessage_CleaningMakesNothingNew(t *testing.T) {
	for name, text := range map[string]string{
		"zero width":     "Release [skip\u200b ci]",
		"two spaces":     "Release [skip  ci]",
		"a line break":   "Release [skip\nci]",
		"nested":         "Release [skip\u200b [ci skip]ci]",
		"a control sign": "Release [ci\x00 skip]",
	} {
		r := request()
		r.RejectedSubject, r.Message, r.Measurements = text, text, []string{text}
		got, err := revert.Message(r, "{{.Message}}")
		if err != nil || strings.Contains(got, "skip ci]") || strings.Contains(got, "ci skip]") {
			t.Errorf("%s: %v\n%q", name, err, got)
		}
	}
}

func TestMessage_HoldsNoCredentialsOfURLs(t *testing.T) {
	r := request()
	r.Message, r.RejectedSubject = "GET https://me:hunter2@prom.example.com/api: 500", "Move to ssh://hunter2@git.example.com/x"
	for _, body := range []string{"", "{{.Message}} {{.RejectedSubject}}"} {
		got, err := revert.Message(r, body)
		if err != nil || strings.Contains(got, "hunter2") || !strings.Contains(got, "https://prom.example.com/api") {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

const ownTrailers = `Pushback-Rollout: shop/web
Pushback-Rejected-Template: 1111111111
Pushback-Restored-Template: 2222222222
Pushback-Rejected-Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
Pushback-Attempt: 3
Pushback-Analysis: web-1111111111-3-1
`

func TestMessage_Template(t *testing.T) {
	for name, c := range map[string]struct{ template, want string }{
		"variables":            {"{{.Rollout.Name}} failed: {{.Message}}\n", "web failed: metric errors was 0.5, want < 0.01\n\n"},
		"measurements":         {"{{range .Measurements}}* {{.}}\n{{end}}", "* errors 0.48 at 12:00:00\n* errors 0.5 at 12:00:10\n\n"},
		"nothing":              {"{{/* */}}", ""},
		"the date":             {"{{.AbortedAt}}", "2023-11-14T22:13:20Z\n\n"},
		"trailers at its end":  {"Sorry.\n\nSigned-off-by: Bot <bot@example.com>", "Sorry.\n\nSigned-off-by: Bot <bot@example.com>\n"},
		"trailers and no text": {"Signed-off-by: Bot <bot@example.com>", "Signed-off-by: Bot <bot@example.com>\n"},
		"a person's own skip":  {"[skip ci]", "[skip ci]\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := revert.Message(request(), c.template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("Revert \"Release shop v3\"\n\n"+c.want+ownTrailers, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	var wrong *revertspec.MessageError
	if _, err := revert.Message(request(), "{{.Nope}}"); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
}

// Whatever the request says and the template does with it, the last paragraph is
// ours, and no line beside it could be taken for ours.
func TestMessage_TemplateForgesNothing(t *testing.T) {
	nasty := []string{"Pushback-Retry: x", "pushback-retry: x", "\u200bPushback-Retry: x", "\x00Pushback-Retry: x", "\n\nPushback-Retry: x\n\n", "\r\nPushback-Retry: x",
		"\u2028Pushback-Retry: x", "\u00a0Pushback-Retry: x", "[skip ci]Pushback-Retry: x", "a\vPushback-Retry: x", "Push\u200bback-Retry: x"}
	for _, text := range nasty {
		r := request()
		r.Message, r.RejectedSubject, r.RejectedRevision, r.AnalysisRun, r.Measurements = text, text, text, text, []string{text}
		r.Reason, r.Rollout.Name, r.GitSync.Name = v1alpha1.AbortReason(text), text, text
		for _, body := range []string{"", "{{.Message}}", "x\n\n{{.Message}}\n{{.RejectedSubject}}\n\n{{.Reason}}", "{{range .Measurements}}{{.}}\n{{end}}\n\n{{.AnalysisRun}}", "\u200b{{.Message}}\n\t{{.Message}}\n\n{{.Rollout.Name}}"} {
			got, err := revert.Message(r, body)
			if err != nil {
				t.Fatal(err)
			}
			paragraphs := strings.Split(strings.TrimSuffix(got, "\n"), "\n\n")
			last := paragraphs[len(paragraphs)-1]
			if !strings.HasPrefix(last, "Pushback-Rollout: ") || !strings.Contains(last, "\nPushback-Attempt: 3") || strings.Contains(strings.ToLower(last), "\npushback-retry") {
				t.Errorf("%q, %q: the trailers are %q", text, body, last)
			}
			for _, paragraph := range paragraphs[:len(paragraphs)-1] {
				for _, line := range strings.Split(paragraph, "\n") {
					if revertspec.IsOwnTrailer(line) {
						t.Errorf("%q, %q: forged %q", text, body, line)
					}
				}
			}
		}
	}
}

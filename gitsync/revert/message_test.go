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

func TestMessage_Template(t *testing.T) {
	got, err := revert.Message(request(), "{{.Rollout.Name}} failed: {{.Message}}\nPushback-Retry: {{.Rejected}}\n")
	if err != nil || !strings.HasPrefix(got, "Revert \"Release shop v3\"\n\nweb failed: metric errors was 0.5, want < 0.01\n\nPushback-Rollout: ") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"{{", "{{.Nope}}", `{{range $i, $_ := .Measurements}}{{printf "%10000d" 1}}{{end}}`} {
		var wrong *revert.MessageError
		if _, err := revert.Message(request(), bad); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

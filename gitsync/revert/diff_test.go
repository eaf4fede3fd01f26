package revert_test

import (
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/gitsync/revert"
)

func TestDiff(t *testing.T) {
	bad := strings.Replace(simple, "app:1", "app:2", 1)
	got, err := revert.Diff(files("w.yaml", bad), files("w.yaml", simple), 8<<10)
	if err != nil || !strings.HasPrefix(got, "--- a/w.yaml\n+++ b/w.yaml\n@@") || !strings.Contains(got, "-        image: app:2\n+        image: app:1\n") {
		t.Errorf("%v\n%s", err, got)
	}
	cut, err := revert.Diff(files("w.yaml", bad), files("w.yaml", simple), 60)
	if err != nil || len(cut) > 60 || !strings.HasSuffix(cut, "(cut off)\n") {
		t.Errorf("%v\n%q", err, cut)
	}
}

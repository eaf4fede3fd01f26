package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
)

// What is not pruned because a version in use names it is said, and the GitSync is ready all the same.
func TestWhatIsKeptIsNamed(t *testing.T) {
	revision := gitsync.Revision{Branch: "main", Hash: strings.Repeat("0a", 20)}
	var many []apply.Change
	for i := range 7 {
		many = append(many, apply.Change{Object: fmt.Sprintf("ConfigMap/shop/c%d", i), Action: apply.Kept})
	}
	for name, tc := range map[string]struct {
		changes []apply.Change
		want    string
	}{
		"nothing": {[]apply.Change{{Object: "ConfigMap/shop/a", Action: apply.Pruned}}, ""},
		"one":     {many[:1], "; kept, because versions in use name them: ConfigMap/shop/c0"},
		"many": {many, "; kept, because versions in use name them: ConfigMap/shop/c0, ConfigMap/shop/c1, ConfigMap/shop/c2, " +
			"ConfigMap/shop/c3, ConfigMap/shop/c4 and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgeApply(apply.Out{Changes: tc.changes}, nil, revision)
			if diff := cmp.Diff("Applied "+revision.String()+tc.want, v.message); diff != "" || v.ready != metav1.ConditionTrue || v.stalled {
				t.Errorf("%+v\n%s", v, diff)
			}
		})
	}
}

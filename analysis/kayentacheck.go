package analysis

import (
	"fmt"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// maxScore is the best score that Kayenta gives.
const maxScore = 100

func checkKayenta(k v1alpha1.KayentaMetric, path string, c completeness, ps *problems) {
	open := c == partial && strings.Contains(k.Address, "{{")
	if !open && !strings.HasPrefix(k.Address, "http://") && !strings.HasPrefix(k.Address, "https://") {
		ps.add(path+".address", "the address wants to begin with http:// or https://")
	}
	if k.CanaryConfigName == "" {
		ps.add(path+".canaryConfigName", "the name of a canary config is wanted")
	}
	if t := k.Threshold; t.Pass < 0 || t.Pass > maxScore || t.Marginal < 0 || t.Marginal > maxScore {
		ps.add(path+".threshold", "scores are from 0 to %d: pass is %d and marginal %d", maxScore, t.Pass, t.Marginal)
	} else if t.Marginal > t.Pass {
		ps.add(path+".threshold", "marginal (%d) is above pass (%d): no score would be in between", t.Marginal, t.Pass)
	} else if t.Pass == 0 {
		ps.add(path+".threshold.pass", "every score reaches 0: nothing could fail")
	}
	checkScopes(k.Scopes, path+".scopes", c, ps)
}

func checkScopes(scopes []v1alpha1.KayentaScope, path string, c completeness, ps *problems) {
	if len(scopes) == 0 {
		ps.add(path, "a scope is wanted, which says what is compared with what")
	}
	seen := map[string]bool{}
	for i, s := range scopes {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case s.Name == "":
			ps.add(at+".name", "a scope wants the name that the canary config calls it by")
		case seen[s.Name] && (c == complete || !strings.Contains(s.Name, "{{")):
			ps.add(at+".name", "scope %q is there twice", s.Name)
		}
		seen[s.Name] = true
		checkStep(s.ControlScope, at+".controlScope", ps)
		checkStep(s.ExperimentScope, at+".experimentScope", ps)
	}
}

func checkStep(d v1alpha1.ScopeDetail, path string, ps *problems) {
	if d.Step < 0 {
		ps.add(path+".step", "the step is %d seconds: it can't be negative", d.Step)
	}
}

package stories

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// measured is app with another metric; each pair replaces a text of the file.
func measured(version string, pairs ...string) map[string]string {
	files := app(version, "1", quickSteps)
	before := files["deploy/web.yaml"]
	files["deploy/web.yaml"] = strings.NewReplacer(pairs...).Replace(before)
	return files
}

const (
	theQuery     = `query: "vector({{args.quality}})"`
	theCondition = "successCondition: result[0] >= 0.95"
)

// TestC40_C61_AnswersThatAreNone: nothing, no numbers and text are never a success.
func TestC40_C61_AnswersThatAreNone(t *testing.T) {
	cases := map[string]struct {
		query, condition string
		reason           v1alpha1.AbortReason
		words            string
		reverted         bool
	}{
		"nothing":   {`query: "vector(1) > 2"`, theCondition, v1alpha1.AbortError, "empty", false},
		"nan":       {`query: "vector(0) / vector(0)"`, theCondition, v1alpha1.AbortFailed, "NaN", true},
		"text":      {`query: "'up'"`, theCondition, v1alpha1.AbortError, "", false},
		"bad query": {`query: "vector("`, theCondition, v1alpha1.AbortError, "parse", false},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "c40-"+strings.ReplaceAll(title, " ", "-"))
			s.commit("Add web v1", app("v1", "1", quickSteps))
			s.follow()
			v1 := s.healthyAs("v1")
			bad := s.commit("Release web v2", measured("v2", theQuery, tc.query, theCondition, tc.condition))
			end := s.await("v2 to be taken back", func(o *v1alpha1.Rollout) bool {
				if tc.reverted {
					return len(o.Status.Rejected) == 1 && o.Status.Rejected[0].Revert == v1alpha1.RevertObserved
				}
				return o.Status.Abort
			})
			if end.Status.StableRS != v1.Status.StableRS {
				t.Errorf("stable is %s, want %s", end.Status.StableRS, v1.Status.StableRS)
			}
			s.weightsBecome(100, 0)
			if tc.reverted {
				if got := end.Status.Rejected[0]; got.Reason != tc.reason || !strings.Contains(got.Message, tc.words) {
					t.Errorf("rejected as %+v, want %s with %q", got, tc.reason, tc.words)
				}
				return
			}
			if end.Status.AbortReason != tc.reason || !strings.Contains(end.Status.Message, tc.words) || !strings.Contains(end.Status.Message, "quality") {
				t.Errorf("abort %s: %q, want %s with %q and the metric", end.Status.AbortReason, end.Status.Message, tc.reason, tc.words)
			}
			s.settled()
			s.calm()
			if head, err := s.repo.Head(s.ctx); err != nil || head != bad || len(s.reverts()) > 0 || len(s.rollout().Status.Rejected) > 0 {
				t.Errorf("head %s (%v), %d Reverts, rejected %v: what could not be measured was held against the version", head, err, len(s.reverts()), s.rollout().Status.Rejected)
			}
		})
	}
}

// TestAnOutageOfTheProviderIsNotABadRelease (law 10): weight 0, nothing rejected,
// nothing reverted; a retry works when the provider is back.
func TestAnOutageOfTheProviderIsNotABadRelease(t *testing.T) {
	t.Parallel()
	s := begin(t, "outage")
	target, err := url.Parse(shared.PromURL)
	s.must(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	var up atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	at := []string{theQuery, "address: " + server.URL + ", " + theQuery}
	s.commit("Add web v1", measured("v1", at...))
	s.follow()
	v1 := s.healthyAs("v1")
	bad := s.commit("Release web v2", measured("v2", at...))
	down := s.await("Unmeasured", func(o *v1alpha1.Rollout) bool {
		return o.Status.Abort && o.Status.AbortReason == v1alpha1.AbortError && o.Status.Phase == v1alpha1.RolloutPhaseDegraded
	})
	for _, want := range []string{"Unmeasured", "503", "retry"} {
		if !strings.Contains(down.Status.Message, want) {
			t.Errorf("message %q lacks %s", down.Status.Message, want)
		}
	}
	s.weightsBecome(100, 0)
	s.settled()
	s.calm()
	if head, err := s.repo.Head(s.ctx); err != nil || head != bad || len(s.reverts()) > 0 || len(down.Status.Rejected) > 0 || down.Status.StableRS != v1.Status.StableRS {
		t.Errorf("head %s (%v), %d Reverts, rejected %v: an outage was held against the version", head, err, len(s.reverts()), down.Status.Rejected)
	}
	up.Store(true)
	s.say(v1alpha1.RetryAnnotation, "again")
	v2 := s.healthyAs("v2")
	if v2.Status.Attempt != down.Status.Attempt+1 {
		t.Errorf("attempt %d after %d: want one more", v2.Status.Attempt, down.Status.Attempt)
	}
}

// TestC28_WhatIsMissingIsWaitedFor, and goes on by itself.
func TestC28_WhatIsMissingIsWaitedFor(t *testing.T) {
	doc := func(kind string, files map[string]string) (string, map[string]string) {
		var kept []string
		taken := ""
		for _, d := range strings.Split(files["deploy/web.yaml"], "---\n") {
			if strings.Contains(d, "kind: "+kind+"\n") && (kind != "Service" || strings.Contains(d, "name: web-canary\n")) {
				taken = d
				continue
			}
			kept = append(kept, d)
		}
		return taken, map[string]string{"deploy/web.yaml": strings.Join(kept, "---\n")}
	}
	for _, kind := range []string{"AnalysisTemplate", "HTTPRoute", "Service"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "c28-"+strings.ToLower(kind))
			missing, files := doc(kind, app("v1", "1", quickSteps))
			s.commit("Add web v1, incomplete", files)
			s.follow()
			s.await("the Rollout to say what is missing", func(o *v1alpha1.Rollout) bool {
				return strings.Contains(o.Status.Message, kind) && o.Status.Phase != v1alpha1.RolloutPhaseHealthy
			})
			s.settled()
			s.calm()
			s.commit("Add what was missing", map[string]string{"deploy/missing.yaml": missing})
			began := time.Now()
			s.healthyAs("v1")
			if took := time.Since(began); took > 60*time.Second {
				t.Errorf("it took %s to go on", took)
			}
		})
	}
}

// TestARouteWithoutTheCanary is a person's to mend, and traffic is left alone.
func TestARouteWithoutTheCanary(t *testing.T) {
	t.Parallel()
	s := begin(t, "halfroute")
	files := app("v1", "1", quickSteps)
	files["deploy/web.yaml"] = strings.Replace(files["deploy/web.yaml"], "    - {name: web-canary, port: 80}\n", "", 1)
	s.commit("Add web v1 with half a route", files)
	s.follow()
	said := s.await("InvalidSpec", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseDegraded && condition(o, v1alpha1.InvalidSpecCondition) == "True"
	})
	for _, want := range []string{"HTTPRoute", "web-canary"} {
		if !strings.Contains(said.Status.Message, want) {
			t.Errorf("message %q lacks %s", said.Status.Message, want)
		}
	}
	s.settled()
	s.calm()
	s.commit("Add web v1 whole", app("v1", "1", quickSteps))
	s.healthyAs("v1")
}

// TestSteadyStateCostsNothing: after a promotion a minute of polls, and a restart,
// make no write (law 9).
func TestSteadyStateCostsNothing(t *testing.T) {
	s := begin(t, "still")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "1", quickSteps))
	s.healthyAs("v2")
	s.settled()
	before := s.allWrites()
	during := func(what string, wait time.Duration) {
		<-time.After(wait)
		after := s.allWrites()
		if len(after) > len(before) {
			t.Errorf("%d writes %s:\n%s", len(after)-len(before), what, strings.Join(after[len(before):], "\n"))
		}
		before = after
	}
	during("in a minute of polls", time.Minute)
	s.must(shared.KillController(controller))
	s.must(shared.StartController(s.ctx, controller, soloFlags...))
	during("after a restart", 15*time.Second)
	if got := len(s.analysisRuns()); got != 1 {
		t.Errorf("%d AnalysisRuns, want 1", got)
	}
}

package stories

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
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

// outage is a tale in which v2 could not be measured, as its provider is out.
type outage struct {
	*tale
	// up lets the provider answer.
	up atomic.Bool
	// asked counts the questions that it did not answer.
	asked atomic.Int64
	bad   string // the commit of v2
	v1    *v1alpha1.Rollout
	down  *v1alpha1.Rollout
}

func beginOutage(t *testing.T, name string) *outage {
	s := &outage{tale: begin(t, name)}
	target, err := url.Parse(shared.PromURL)
	s.must(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.up.Load() {
			s.asked.Add(1)
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	at := []string{theQuery, "address: " + server.URL + ", " + theQuery}
	s.commit("Add web v1", measured("v1", at...))
	s.follow()
	s.v1 = s.healthyAs("v1")
	s.bad = s.commit("Release web v2", measured("v2", at...))
	s.down = s.await("Unmeasured", func(o *v1alpha1.Rollout) bool {
		return o.Status.Abort && o.Status.AbortReason == v1alpha1.AbortError && o.Status.Phase == v1alpha1.RolloutPhaseDegraded
	})
	for _, want := range []string{"Unmeasured", "503", "when the provider answers", "retry"} {
		if !strings.Contains(s.down.Status.Message, want) {
			t.Errorf("message %q lacks %s", s.down.Status.Message, want)
		}
	}
	return s
}

// nothingIsHeldAgainstIt: neither the status nor Git says that v2 is bad.
func (s *outage) nothingIsHeldAgainstIt() {
	s.Helper()
	status := s.rollout().Status
	if head, err := s.repo.Head(s.ctx); err != nil || head != s.bad || len(s.reverts()) > 0 || len(status.Rejected) > 0 {
		s.Errorf("head %s (%v), %d Reverts, rejected %v: an outage was held against the version", head, err, len(s.reverts()), status.Rejected)
	}
}

// ends with v2 Healthy, one attempt later.
func (s *outage) ends() {
	s.Helper()
	v2 := s.healthyAs("v2")
	if v2.Status.Attempt != s.down.Status.Attempt+1 {
		s.Errorf("attempt %d after %d: want one more", v2.Status.Attempt, s.down.Status.Attempt)
	}
	s.nothingIsHeldAgainstIt()
	s.awaitThat("no run to be asked any more", func(context.Context) (bool, error) {
		asked := func(run v1alpha1.AnalysisRun) bool { return run.Annotations[v1alpha1.ProbeAnnotation] != "" }
		return !slices.ContainsFunc(s.analysisRuns(), asked), nil
	})
}

// TestAnOutageOfTheProviderIsNotABadRelease (law 10): weight 0, nothing rejected,
// nothing reverted; the provider's return alone starts the version again. While it
// is out it is asked, and nothing is written (law 9).
func TestAnOutageOfTheProviderIsNotABadRelease(t *testing.T) {
	t.Parallel()
	s := beginOutage(t, "outage")
	s.weightsBecome(100, 0)
	// Half a minute later the pods of v2 go, which is written.
	s.awaitThat("the pods of v2 to go", func(context.Context) (bool, error) {
		return s.replicaSet(s.down.Status.CurrentPodHash).Status.Replicas == 0, nil
	})
	s.settled()
	if stable := s.rollout().Status.StableRS; stable != s.v1.Status.StableRS {
		t.Errorf("stable is %s, want %s", stable, s.v1.Status.StableRS)
	}
	before, asked := s.allWrites(), s.asked.Load()
	s.awaitThat("the provider to be asked twice more", func(context.Context) (bool, error) { return s.asked.Load() >= asked+2, nil })
	if after := s.allWrites(); len(after) > len(before) {
		t.Errorf("%d writes during the outage:\n%s", len(after)-len(before), strings.Join(after[len(before):], "\n"))
	}
	s.nothingIsHeldAgainstIt()
	s.up.Store(true)
	s.ends()
	if !slices.ContainsFunc(s.analysisRuns(), func(run v1alpha1.AnalysisRun) bool {
		return run.Status.Phase == v1alpha1.AnalysisPhaseError && run.Status.AnsweredAt != nil
	}) {
		t.Error("no run says that its provider answered again")
	}
	if said := s.rollout().Status.Verbs; len(said) > 0 {
		t.Errorf("a person's verbs were carried out: %v", said)
	}
}

// TestAPersonNeedNotWaitForTheProvider: retry starts the version at once.
func TestAPersonNeedNotWaitForTheProvider(t *testing.T) {
	t.Parallel()
	s := beginOutage(t, "outage-retry")
	s.up.Store(true)
	s.say(v1alpha1.RetryAnnotation, "again")
	s.ends()
	if got := s.rollout().Status.Verbs["retry"]; got.Token != "again" || got.Refused != "" {
		t.Errorf("the retry came to %+v", got)
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

// TestSteadyStateCostsNothing: after a promotion a minute of polls makes no write (law 9).
func TestSteadyStateCostsNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, "still")
	s.promoted()
	s.idle("in a minute of polls", time.Minute)
	if got := len(s.analysisRuns()); got != 1 {
		t.Errorf("%d AnalysisRuns, want 1", got)
	}
}

// TestARestartCostsNothing: a controller that starts over finds everything done (laws 7 and 9).
func TestARestartCostsNothing(t *testing.T) {
	s := begin(t, "restart")
	s.promoted()
	s.must(shared.KillController(controller))
	s.must(shared.StartController(s.ctx, controller, soloFlags...))
	s.idle("after a restart", 15*time.Second)
}

// promoted brings v2 out, and waits until nothing of it is left to write.
func (s *tale) promoted() {
	s.Helper()
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "1", quickSteps))
	s.healthyAs("v2")
	s.settled()
}

// idle checks that nothing is written during a time, which is what is tested.
func (s *tale) idle(what string, during time.Duration) {
	s.Helper()
	before := s.allWrites()
	<-time.After(during)
	if after := s.allWrites(); len(after) > len(before) {
		s.Errorf("%d writes %s:\n%s", len(after)-len(before), what, strings.Join(after[len(before):], "\n"))
	}
}

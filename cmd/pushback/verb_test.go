package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/templatehash"
)

const shopTemplate = `{"spec":{"containers":[{"name":"shop","image":"shop:v3"}]}}`

var shopKey = types.NamespacedName{Namespace: "shop", Name: "shop"}

// shop is a Rollout with three steps, changed as told.
func shop(change func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
	replicas, quarter, half := int32(4), int32(25), int32(50)
	o := &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Replicas: &replicas, Template: &runtime.RawExtension{Raw: []byte(shopTemplate)},
		Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{Steps: []v1alpha1.CanaryStep{
			{SetWeight: &quarter}, {Pause: &v1alpha1.RolloutPause{}}, {SetWeight: &half}}}},
	}}
	o.Namespace, o.Name, o.UID = "shop", "shop", "shop"
	change(o)
	return o
}

// inCanary is a status in the pause after the first step.
func inCanary(o *v1alpha1.Rollout) {
	index := int32(1)
	o.Status = v1alpha1.RolloutStatus{
		Phase: v1alpha1.RolloutPhasePaused, Message: "CanaryPauseStep", Attempt: 2, Step: "1/3", CurrentStepIndex: &index,
		StableRS: "aaaaaaaaaa", CurrentPodHash: "bbbbbbbbbb", AvailableReplicas: 5,
	}
	o.Status.Canary.Weights = &v1alpha1.TrafficWeights{
		Canary: v1alpha1.WeightDestination{Weight: 25}, Stable: v1alpha1.WeightDestination{Weight: 75}}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// cluster holds objects and has no controller.
func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build()
}

// answering is a cluster whose controller answers a verb as soon as it is written.
func answering(t *testing.T, o *v1alpha1.Rollout, answer func(*v1alpha1.Rollout, string)) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(cluster(t, o), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.Patch(ctx, object, patch, options...); err != nil {
				return err
			}
			var now v1alpha1.Rollout
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), &now); err != nil {
				return err
			}
			for _, name := range []string{"promote", "promote-full", "abort", "retry", "pause", "resume", "restart"} {
				parts := strings.Split(now.Annotations[v1alpha1.GroupVersion.Group+"/"+name], "/")
				if len(parts) == 3 {
					now.Status.Verbs = map[string]v1alpha1.VerbStatus{name: {Token: parts[2]}}
					answer(&now, name)
				}
			}
			return c.Update(ctx, &now)
		},
	})
}

func TestVerbsAreAimedAtWhatWasRead(t *testing.T) {
	held, err := templatehash.Hash(templatehash.Version, []byte(shopTemplate))
	if err != nil {
		t.Fatal(err)
	}
	isHeld := func(o *v1alpha1.Rollout) {
		inCanary(o)
		o.Status.CurrentPodHash = o.Status.StableRS
		o.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: held}}
	}
	tests := map[string]struct {
		verb   verb
		status func(*v1alpha1.Rollout)
		// want is the annotation without its token.
		want string
	}{
		"promote":                             {verb: promoteVerb(false), status: inCanary, want: "bbbbbbbbbb/1/"},
		"promote --full":                      {verb: promoteVerb(true), status: inCanary, want: "bbbbbbbbbb/1/"},
		"abort":                               {verb: abortVerb(false), status: inCanary, want: "bbbbbbbbbb/1/"},
		"pause":                               {verb: pauseVerb(), status: inCanary, want: "bbbbbbbbbb/1/"},
		"resume":                              {verb: resumeVerb(), status: inCanary, want: "bbbbbbbbbb/1/"},
		"restart":                             {verb: restartVerb(), status: inCanary, want: "bbbbbbbbbb/1/"},
		"retry of the current version":        {verb: retryVerb(""), status: inCanary, want: "bbbbbbbbbb/1/"},
		"retry of the declared, held version": {verb: retryVerb(""), status: isHeld, want: held + "/1/"},
		"retry of an earlier version":         {verb: retryVerb("cccccccccc"), status: isHeld, want: "cccccccccc/1/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := answering(t, shop(tt.status), func(*v1alpha1.Rollout, string) {})
			if err := runVerb(t.Context(), &bytes.Buffer{}, c, shopKey, tt.verb, time.Minute, outputFlag{}); err != nil {
				t.Fatal(err)
			}
			after, err := readRollout(t.Context(), c, shopKey)
			if err != nil {
				t.Fatal(err)
			}
			value := after.Annotations[tt.verb.annotation]
			if token, ok := strings.CutPrefix(value, tt.want); !ok || len(token) != 8 {
				t.Errorf("annotation %q, want %q and a token of 8 digits", value, tt.want)
			}
			if len(after.Annotations) != 1 {
				t.Errorf("annotations %v, want no other", after.Annotations)
			}
		})
	}
}

// The mark to leave Git alone carries the abort's token, so that it can't speak of another abort.
func TestAbortKeepGitCarriesTheToken(t *testing.T) {
	var out bytes.Buffer
	c := answering(t, shop(inCanary), func(o *v1alpha1.Rollout, _ string) {
		o.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: "bbbbbbbbbb", Revert: v1alpha1.RevertPhaseNone, RevertReason: "a person said so"}}
	})
	if err := runVerb(t.Context(), &out, c, shopKey, abortVerb(true), time.Minute, outputFlag{}); err != nil {
		t.Fatal(err)
	}
	after, err := readRollout(t.Context(), c, shopKey)
	if err != nil {
		t.Fatal(err)
	}
	token := after.Annotations[v1alpha1.AbortKeepGitAnnotation]
	if token == "" || after.Annotations[v1alpha1.AbortAnnotation] != "bbbbbbbbbb/1/"+token {
		t.Errorf("annotations %v, want one token in both", after.Annotations)
	}
	if want := "shop: abort. All traffic goes back to the stable version; Git is left as it is: a person said so\n"; out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}

func TestVerbsSayWhatHappens(t *testing.T) {
	tests := map[string]struct {
		verb   verb
		answer func(*v1alpha1.Rollout, string)
		want   string
	}{
		"promote": {verb: promoteVerb(false), answer: func(o *v1alpha1.Rollout, _ string) { o.Status.Step = "2/3" },
			want: "shop: promote. It is at step 2/3 now\n"},
		"promote --full": {verb: promoteVerb(true), answer: func(*v1alpha1.Rollout, string) {},
			want: "shop: promote-full. The remaining steps are skipped; all traffic goes to the new version as soon as it is available\n"},
		"abort": {verb: abortVerb(false), answer: func(*v1alpha1.Rollout, string) {},
			want: "shop: abort. All traffic goes back to the stable version, and a revert commit follows\n"},
		"pause": {verb: pauseVerb(), answer: func(*v1alpha1.Rollout, string) {},
			want: "shop: pause. It stays as it is (step 1/3) until resume; an abort still moves the traffic back\n"},
		"resume": {verb: resumeVerb(), answer: func(o *v1alpha1.Rollout, _ string) { o.Status.Phase = v1alpha1.RolloutPhaseProgressing },
			want: "shop: resume. It goes on at step 1/3\n"},
		"resume into the pause of a step": {verb: resumeVerb(), answer: func(*v1alpha1.Rollout, string) {},
			want: "shop: resume. It goes on at step 1/3, where it waits: CanaryPauseStep\n"},
		"resume of nothing in progress": {verb: resumeVerb(), answer: func(o *v1alpha1.Rollout, _ string) {
			o.Status.Phase, o.Status.StableRS = v1alpha1.RolloutPhaseHealthy, o.Status.CurrentPodHash
		}, want: "shop: resume. The next version that Git declares is taken up\n"},
		"restart": {verb: restartVerb(), answer: func(*v1alpha1.Rollout, string) {},
			want: "shop: restart. Pods that were created before now are evicted, as many at a time as maxUnavailable and PodDisruptionBudgets allow; 'status' waits for the end\n"},
		"retry": {verb: retryVerb(""), answer: func(o *v1alpha1.Rollout, _ string) { o.Status.Attempt = 3 },
			want: "shop: retry. Attempt 3 starts at the first step with no traffic\n"},
		"retry of what Git does not declare": {verb: retryVerb("cccccccccc"),
			answer: func(o *v1alpha1.Rollout, _ string) { o.Status.CurrentPodHash = o.Status.StableRS },
			want:   "shop: retry. The hold is lifted; the version starts when Git declares it again\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := runVerb(t.Context(), &out, answering(t, shop(inCanary), tt.answer), shopKey, tt.verb, time.Minute, outputFlag{}); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("said %q, want %q", out.String(), tt.want)
			}
		})
	}
}

func TestVerbsFailWithTheReason(t *testing.T) {
	tests := map[string]struct {
		cluster client.Client
		want    []string // in the error
	}{
		"refused": {
			cluster: answering(t, shop(inCanary), func(o *v1alpha1.Rollout, name string) {
				o.Status.Verbs[name] = v1alpha1.VerbStatus{Token: o.Status.Verbs[name].Token, Refused: "nothing is in progress"}
			}),
			want: []string{"promote was refused: nothing is in progress"},
		},
		"no answer":       {cluster: cluster(t, shop(inCanary)), want: []string{"did not answer within 1ms", "is it running", "get pods"}},
		"no version yet":  {cluster: cluster(t, shop(func(*v1alpha1.Rollout) {})), want: []string{"shop has no version yet", "has not looked at it yet"}},
		"no such Rollout": {cluster: cluster(t), want: []string{`no Rollout "shop" in the namespace "shop"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := runVerb(t.Context(), &out, tt.cluster, shopKey, promoteVerb(false), time.Millisecond, outputFlag{})
			if err == nil {
				t.Fatalf("no error, said %q", out.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if exitCode(err) != 1 || out.Len() > 0 {
				t.Errorf("exit code %d with output %q, want 1 and none", exitCode(err), out.String())
			}
		})
	}
}

// An answer to somebody else's verb is not ours.
func TestAVerbWaitsForItsOwnToken(t *testing.T) {
	c := cluster(t, shop(func(o *v1alpha1.Rollout) {
		inCanary(o)
		o.Status.Verbs = map[string]v1alpha1.VerbStatus{"promote": {Token: "somebody"}}
	}))
	err := runVerb(t.Context(), &bytes.Buffer{}, c, shopKey, promoteVerb(false), time.Millisecond, outputFlag{})
	if err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("error %v, want that nobody answered", err)
	}
}

func TestWrongUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent/config")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	tests := map[string]struct {
		args []string
		want string
	}{
		"no name":      {args: []string{"promote"}, want: "promote takes the name of one Rollout, and got 0: see 'pushback promote --help'"},
		"two names":    {args: []string{"get", "a", "b"}, want: "get takes the name of one Rollout, and got 2"},
		"wrong output": {args: []string{"status", "shop", "-o", "xml"}, want: `"xml" is not an output format here; use json, yaml, wide, name`},
		"no cluster":   {args: []string{"get"}, want: "no cluster to talk to: none of /nonexistent/config exists"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := execute(t.Context(), tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestShellsCompleteRollouts(t *testing.T) {
	elsewhere := shop(inCanary)
	elsewhere.Namespace, elsewhere.Name = "bank", "teller"
	names, err := namesOf(t.Context(), cluster(t, shop(inCanary), elsewhere), "shop", &v1alpha1.RolloutList{})
	if err != nil || len(names) != 1 || names[0] != "shop" {
		t.Errorf("%v, %v; want shop alone", names, err)
	}
}

func TestAClusterWithoutPushback(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("Rollout").GroupKind()}
	c := interceptor.NewClient(cluster(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return missing
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return missing },
	})
	_, one := readRollout(t.Context(), c, shopKey)
	_, all := drawn(t, readList(c, "shop", false, outputFlag{}), style{})
	for _, err := range []error{one, all} {
		if !meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "-k manifests/install") {
			t.Errorf("error %v does not say how to install", err)
		}
	}
}

func TestReadingFindsNothing(t *testing.T) {
	if _, err := readRollout(t.Context(), cluster(t), shopKey); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want a NotFound", err)
	}
}

func TestVerbsPrintForPrograms(t *testing.T) {
	tests := map[string]string{
		formatJSON: `{
  "namespace": "shop",
  "rollout": "shop",
  "verb": "pause",
  "next": "It stays as it is (step 1/3) until resume; an abort still moves the traffic back",
  "phase": "Paused",
  "step": "1/3"
}
`,
		formatYAML: `namespace: shop
next: It stays as it is (step 1/3) until resume; an abort still moves the traffic
  back
phase: Paused
rollout: shop
step: 1/3
verb: pause
`,
		formatName: "rollout.pushback.dev/shop\n",
	}
	for format, want := range tests {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			c := answering(t, shop(inCanary), func(*v1alpha1.Rollout, string) {})
			if err := runVerb(t.Context(), &out, c, shopKey, pauseVerb(), time.Minute, outputFlag{format: format}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

package stories

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// followWith makes the GitSync with other settings.
func (s *tale) followWith(change func(*v1alpha1.GitSyncSpec)) error {
	sync := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
		Spec: v1alpha1.GitSyncSpec{URL: s.repo.URL(), Ref: &v1alpha1.GitRef{Branch: "main"}, Path: "deploy",
			Interval: metav1.Duration{Duration: time.Second}, TargetNamespace: s.namespace, Prune: true},
	}
	change(&sync.Spec)
	return shared.Client.Create(s.ctx, sync)
}

// says waits until the GitSync is not Ready for a reason, with all of the words in
// its message.
func (s *tale) says(reason string, words ...string) string {
	s.Helper()
	last := ""
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if c := apimeta.FindStatusCondition(s.gitSync().Status.Conditions, "Ready"); c != nil {
			last = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			has := func(word string) bool { return strings.Contains(c.Message, word) }
			if c.Status == metav1.ConditionFalse && c.Reason == reason && !slices.ContainsFunc(words, func(w string) bool { return !has(w) }) {
				return c.Message
			}
		}
		<-time.After(50 * time.Millisecond)
	}
	s.Errorf("the GitSync says\n  %s\nwant False %s with the words %q", last, reason, words)
	return last
}

// ready waits until the GitSync is Ready at the head.
func (s *tale) ready() {
	s.Helper()
	head, err := s.repo.Head(s.ctx)
	s.must(err)
	s.awaitThat("the GitSync to be Ready", func(context.Context) (bool, error) {
		status := s.gitSync().Status
		return apimeta.IsStatusConditionTrue(status.Conditions, "Ready") && strings.HasSuffix(status.LastAppliedRevision, head), nil
	})
}

// calm checks that the controllers write nothing while a bad input stays as it is:
// dry runs apart, which each look at the cluster needs.
func (s *tale) calm() {
	s.Helper()
	before := s.allWrites()
	<-time.After(4 * time.Second) // four polls
	if after := s.allWrites(); len(after) > len(before) {
		s.Errorf("%d writes in 4 s while nothing changed:\n%s", len(after)-len(before), strings.Join(after[len(before):], "\n"))
	}
}

// allWrites are the writes of writes, and those to GitSyncs.
func (s *tale) allWrites() []string {
	s.Helper()
	all, err := shared.Cluster.Writes()
	s.must(err)
	var out []string
	for _, w := range all {
		if strings.HasPrefix(w.User, "system:serviceaccount:pushback-system:") && !w.DryRun() && w.Namespace == s.namespace {
			out = append(out, fmt.Sprintf("%s %s %s (%d)", w.Time.Format(time.StampMilli), w.Verb, w.URI, w.Code))
		}
	}
	return out
}

// TestC134_UnusableRepositories end in a condition, and heal.
func TestC134_UnusableRepositories(t *testing.T) {
	secret := func(name string) func(*v1alpha1.GitSyncSpec) {
		return func(spec *v1alpha1.GitSyncSpec) {
			spec.URL, spec.SecretRef = "https://127.0.0.1:1/team/web.git", &meta.LocalObjectReference{Name: name}
		}
	}
	cases := map[string]struct {
		change func(*v1alpha1.GitSyncSpec)
		empty  bool
		reason string
		words  []string
	}{
		"path":       {func(spec *v1alpha1.GitSyncSpec) { spec.Path = "nowhere/at/all" }, false, v1alpha1.ReasonPathNotFound, []string{"nowhere/at/all"}},
		"branch":     {func(spec *v1alpha1.GitSyncSpec) { spec.Ref.Branch = "release" }, false, v1alpha1.ReasonBranchNotFound, []string{"release"}},
		"empty":      {func(*v1alpha1.GitSyncSpec) {}, true, v1alpha1.ReasonEmptyRepository, []string{"empty"}},
		"gone":       {func(spec *v1alpha1.GitSyncSpec) { spec.URL = "file:///no/such/repository.git" }, false, v1alpha1.ReasonGitOperationFailed, []string{"/no/such/repository.git"}},
		"refused":    {func(spec *v1alpha1.GitSyncSpec) { spec.URL = "http://127.0.0.1:1/team/web.git" }, false, v1alpha1.ReasonGitOperationFailed, []string{"127.0.0.1:1"}},
		"password":   {func(spec *v1alpha1.GitSyncSpec) { spec.URL = "https://ada:s3cr3t-w0rd@git.example.com/web.git" }, false, v1alpha1.ReasonInvalidGitSync, []string{"spec.url", "secretRef"}},
		"token":      {func(spec *v1alpha1.GitSyncSpec) { spec.URL = "https://git.example.com/web.git?token=s3cr3t-w0rd" }, false, v1alpha1.ReasonInvalidGitSync, []string{"spec.url", "secretRef"}},
		"no secret":  {secret("absent"), false, v1alpha1.ReasonAuthenticationFailed, []string{"absent", "create it"}},
		"bad secret": {secret("lacking"), false, v1alpha1.ReasonAuthenticationFailed, []string{"password"}},
		"above":      {func(spec *v1alpha1.GitSyncSpec) { spec.Path = "../elsewhere" }, false, v1alpha1.ReasonInvalidGitSync, []string{"spec.path"}},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "c134-"+strings.ReplaceAll(title, " ", "-"))
			if !tc.empty {
				s.commit("Add web v1", app("v1", "1", quickSteps))
			}
			lacking := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "lacking"}, StringData: map[string]string{"username": "s3cr3t-w0rd"}}
			s.must(shared.Client.Create(s.ctx, lacking))
			s.must(s.followWith(tc.change))
			if message := s.says(tc.reason, tc.words...); strings.Contains(message, "s3cr3t-w0rd") {
				t.Errorf("the message holds a secret: %s", message)
			}
			s.calm()
			if log, err := os.ReadFile(shared.ControllerLog(controller)); err != nil || strings.Contains(string(log), "s3cr3t-w0rd") {
				t.Errorf("the log holds a secret, or can't be read: %v", err)
			}
			// And heals, by a commit or by the right settings.
			if tc.empty {
				s.commit("Add web v1", app("v1", "1", quickSteps))
			} else {
				sync := s.gitSync()
				before := client.MergeFrom(sync.DeepCopy())
				sync.Spec.URL, sync.Spec.Path, sync.Spec.Ref.Branch, sync.Spec.SecretRef = s.repo.URL(), "deploy", "main", nil
				s.must(shared.Client.Patch(s.ctx, sync, before))
			}
			s.healthyAs("v1")
		})
	}
}

// TestC46_BadDocuments leave a running Rollout alone, and say where they are bad.
func TestC46_BadDocuments(t *testing.T) {
	edit := func(old, replacement string) func(map[string]string) {
		return func(files map[string]string) {
			before := files["deploy/web.yaml"]
			files["deploy/web.yaml"] = strings.Replace(before, old, replacement, 1)
			if before == files["deploy/web.yaml"] {
				panic("the edit changes nothing: " + old)
			}
		}
	}
	add := func(text string) func(map[string]string) {
		return func(files map[string]string) { files["deploy/more.yaml"] = text }
	}
	cases := map[string]struct {
		spoil  func(map[string]string)
		reason string
		words  []string
	}{
		"duplicate key":      {edit("      labels: {app: web}\n", "      labels: {app: web}\n      labels: {app: web}\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "labels"}},
		"unknown field":      {edit("  replicas: 4\n", "  replicsa: 4\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "Rollout", "spec.replicsa"}},
		"deep unknown field": {edit("gatewayAPI: {httpRoute: web}", "gatewayAPI: {httpRoute: web, weigth: 1}"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "gatewayAPI.weigth"}},
		"template field":     {edit("        image: reg", "        imagee: x\n        image: reg"), v1alpha1.ReasonApplyFailed, []string{"deploy/web.yaml", "Rollout", "spec.template", "imagee"}},
		"selector":           {edit("matchLabels: {app: web}", "matchLabels: {app: other}"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "spec.selector"}},
		"same services":      {edit("canaryService: web-canary", "canaryService: web-stable"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "canaryService"}},
		"two templates":      {edit("  strategy:\n", "  paused: false\n  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: x}\n  strategy:\n"), v1alpha1.ReasonInvalidManifest, []string{"workloadRef"}},
		"not built":          {edit("  strategy:\n", "  paused: false\n  revert: {mode: Branch}\n  strategy:\n"), v1alpha1.ReasonInvalidManifest, []string{"spec.revert.mode"}},
		"wrong type":         {edit("  replicas: 4\n", "  replicas: \"four\"\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "replicas"}},
		"unquoted":           {edit("quality: \"1\"", "quality: on"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "quality"}},
		"no kind":            {add("apiVersion: v1\nmetadata: {name: x}\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/more.yaml", "kind"}},
		"no name":            {add("apiVersion: v1\nkind: ConfigMap\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/more.yaml", "metadata.name"}},
		"no yaml":            {add("a: [1\nb: }\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/more.yaml"}},
		"unknown kind":       {add("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n"), v1alpha1.ReasonApplyFailed, []string{"deploy/more.yaml", "Thing", "CustomResourceDefinition"}},
		"long name":          {edit("kind: Rollout\nmetadata:\n  name: web\n", "kind: Rollout\nmetadata:\n  name: "+strings.Repeat("w", 200)+"\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "metadata.name"}},
		"forbidden":          {add("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {a: b}\n"), v1alpha1.ReasonForbidden, []string{"deploy/more.yaml", "Secret"}},
		"twice":              {add("apiVersion: v1\nkind: Service\nmetadata: {name: web-stable}\nspec: {ports: [{port: 1}]}\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/more.yaml", "deploy/web.yaml"}},
		"generated name":     {add("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: x-}\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/more.yaml", "generateName"}},
		"huge":               {add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: huge}\ndata: {a: " + strings.Repeat("0123456789", 200000) + "}\n"), v1alpha1.ReasonApplyFailed, []string{"deploy/more.yaml", "ConfigMap", "huge"}},
		"bad condition":      {edit("successCondition: result[0] >= 0.95", "successCondition: result[0] >="), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "AnalysisTemplate", "successCondition"}},
		"bad duration":       {edit("    interval: 1s", "    interval: soon"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "interval"}},
		"bad image":          {edit("ports: [{name: http, containerPort: 8080}]", "ports: [{name: http, containerPort: 808080}]"), v1alpha1.ReasonApplyFailed, []string{"deploy/web.yaml", "containerPort"}},
		"empty step":         {edit("      - setWeight: 50\n", "      - {}\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "steps[2]"}},
		"weight 101":         {edit("      - setWeight: 50\n", "      - setWeight: 101\n"), v1alpha1.ReasonInvalidManifest, []string{"deploy/web.yaml", "steps[2].setWeight"}},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "c46-"+strings.ReplaceAll(title, " ", "-"))
			s.commit("Add web v1", app("v1", "1", quickSteps))
			s.follow()
			s.healthyAs("v1")
			s.settled()
			v1 := s.rollout()
			files := app("v2", "1", quickSteps)
			tc.spoil(files)
			s.commit("Release v2, broken", files)
			s.says(tc.reason, tc.words...)
			whole := tc.reason == v1alpha1.ReasonInvalidManifest && title != "generated name" // which is rejected alone (C137)
			if !whole {
				s.settled() // what the API server refuses fails alone, and v2 may go out beside it
			}
			s.calm()
			if now := s.rollout(); whole && (now.Generation != v1.Generation || now.Status.Phase != v1alpha1.RolloutPhaseHealthy) {
				t.Errorf("the running Rollout was touched: generation %d, phase %s", now.Generation, now.Status.Phase)
			}
			good := app("v3", "1", quickSteps)
			if _, more := files["deploy/more.yaml"]; more {
				good["deploy/more.yaml"] = "# nothing left\n"
			}
			s.commit("Release v3, mended", good)
			s.ready()
			s.healthyAs("v3")
		})
	}
}

// TestHundredsOfDocuments are applied, and cost no write from then on.
func TestHundredsOfDocuments(t *testing.T) {
	t.Parallel()
	s := begin(t, "hundreds")
	files := app("v1", "1", quickSteps)
	var many strings.Builder
	for i := range 250 {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {n: \"%d\"}\n", i, i)
	}
	files["deploy/many.yaml"] = many.String()
	s.commit("Add web and hundreds of ConfigMaps", files)
	s.must(s.followWith(func(spec *v1alpha1.GitSyncSpec) { spec.Interval.Duration = time.Minute }))
	s.ready()
	s.healthyAs("v1")
	before := s.settled()
	s.syncs(2)
	if after := s.writes(); len(after) != len(before) {
		t.Errorf("two more syncs made %d writes:\n%s", len(after)-len(before), strings.Join(after[len(before):min(len(after), len(before)+5)], "\n"))
	}
}

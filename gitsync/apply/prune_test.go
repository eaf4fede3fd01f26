package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
)

// template is a ReplicaSet of a version that may be gone back to.
func (b *bench) makeSet() {
	b.Helper()
	set := declare(b.TB, "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-old, namespace: "+b.namespace+", labels: {pushback.dev/template-hash: aaaaaaaaaa}}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: runner, volumes: [{name: s, secret: {secretName: login}}], containers: [{name: a, image: a, env: [{name: X, valueFrom: {configMapKeyRef: {name: old-settings, key: x}}}]}]}}}}")[0]
	if err := b.client.Create(b.Context(), set.Unstructured); err != nil {
		b.Fatal(err)
	}
}

func TestPrune(t *testing.T) {
	b := newBench(t)
	maps := func(names ...string) []string {
		var out []string
		for _, name := range names {
			out = append(out, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}")
		}
		return out
	}
	rest := []string{stableService, canaryService, route, settings, webRollout}
	all := append(append([]string{}, rest...), maps("free", "old-settings", "theirs")...)
	all = append(all,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: guarded, annotations: {pushback.dev/prune: disabled}}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: login}}", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner}}")
	b.mustApply(all...)
	b.makeSet()
	foreign := b.get("v1", "ConfigMap", "theirs")
	foreign.SetLabels(map[string]string{v1alpha1.GitSyncNameLabel: "another", v1alpha1.GitSyncNamespaceLabel: b.namespace})
	if err := b.client.Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}

	if out := b.apply(append(rest, "{apiVersion: nowhere.example.com/v1, kind: Other, metadata: {name: o}}")...); len(out.Failures) != 1 || !b.exists("v1", "ConfigMap", "free") {
		t.Error("something was pruned although something failed")
	}
	b.in.Rejected = gitsync.ManifestErrors{{File: "x"}}
	if b.mustApply(rest...); !b.exists("v1", "ConfigMap", "free") {
		t.Error("something was pruned although something was rejected")
	}
	b.in.Rejected = nil
	out := b.mustApply(rest...)
	if diff := cmp.Diff(map[string]Action{"ConfigMap/free": Pruned, "ConfigMap/old-settings": Kept, "Secret/login": Kept, "ServiceAccount/runner": Kept,
		"Service/web-stable": Unchanged, "Service/web-canary": Unchanged, "HTTPRoute/web": Unchanged, "ConfigMap/settings": Unchanged, "Rollout/web": Unchanged}, actions(out)); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"old-settings", "theirs", "guarded"} {
		if !b.exists("v1", "ConfigMap", name) {
			t.Errorf("%s was pruned", name)
		}
	}
	if !out.Waits() {
		t.Error("what is kept is to be looked at again")
	}

	// A live Rollout keeps what it names; when the ReplicaSet is gone its names are free.
	if err := b.client.Delete(t.Context(), b.get("apps/v1", "ReplicaSet", "web-old")); err != nil {
		t.Fatal(err)
	}
	out = b.mustApply(settings, webRollout)
	if got := actions(out); got["Service/web-stable"] != Kept || got["HTTPRoute/web"] != Kept || got["ConfigMap/old-settings"] != Pruned {
		t.Errorf("got %v", got)
	}
	out = b.mustApply(settings)
	if got := actions(out); got["Rollout/web"] != Pruned || got["Service/web-stable"] != Pruned {
		t.Errorf("want the Rollout and then its Services pruned, got %v", got)
	}
}

package apply

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// requests counts what is asked of the API server, as "LIST configmaps" or "GET
// configmaps", discovery apart.
type requests struct {
	mu    sync.Mutex
	count map[string]int
	// users are the impersonated users of the lists.
	users map[string]bool
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if what := describeRequest(req); what != "" {
			r.mu.Lock()
			r.count[what]++
			if strings.HasPrefix(what, "LIST") {
				r.users[req.Header.Get("Impersonate-User")] = true
			}
			r.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// describeRequest is empty for discovery.
func describeRequest(req *http.Request) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch parts[0] {
	case "api":
		parts = parts[min(2, len(parts)):] // api/v1
	case "apis":
		parts = parts[min(3, len(parts)):] // apis/group/v1
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch {
	case len(parts) == 0:
		return ""
	case len(parts) == 1 && req.Method == http.MethodGet:
		return "LIST " + parts[0]
	}
	return req.Method + " " + parts[0]
}

// watch counts the requests of the applier from now on, made as a user.
func (b *bench) watch(user string) *requests {
	b.Helper()
	seen := &requests{}
	seen.reset()
	config := rest.CopyConfig(b.cluster.RESTConfig())
	config.Wrap(seen.wrap)
	b.applier.Own = newClient(b, config)
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = user
	b.applier.Client = newClient(b, config)
	return seen
}

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.users = map[string]int{}, map[string]bool{}
}

// during are the requests of some work.
func (r *requests) during(work func()) map[string]int {
	r.reset()
	work()
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.count)
}

func total(count map[string]int) int {
	sum := 0
	for _, n := range count {
		sum += n
	}
	return sum
}

func configMaps(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%04d}, data: {value: '%d'}}", i, i))
	}
	return out
}

func TestASteadyPollCostsAListOfEachKind(t *testing.T) {
	b := newBench(t)
	b.in.Memory = NewMemory()
	docs := append(configMaps(200), stableService, canaryService, route, settings, webRollout)
	b.mustApply(docs...)
	b.mustApply(docs...) // what the API server and the garbage collector did to new objects is seen
	seen := b.watch("")
	var out Out
	got := seen.during(func() { out = b.mustApply(docs...) })
	want := map[string]int{
		"LIST configmaps": 1, "LIST services": 1, "LIST httproutes": 1, // the objects
		"LIST rollouts":            2,                                     // theirs, and those that route through the objects
		"LIST controllerrevisions": 1, "LIST horizontalpodautoscalers": 1, // what Rollouts depend on
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(out.Changes) != len(docs) || len(out.Inventory) != len(docs) {
		t.Errorf("want %d objects, got %d, and %d in the inventory", len(docs), len(out.Changes), len(out.Inventory))
	}
	for object, action := range actions(out) {
		if action != Unchanged {
			t.Errorf("%s was %s", object, action)
		}
	}

	// One that differs costs its own comparison, and no other's.
	docs[7] = strings.Replace(docs[7], "value: '7'", "value: seven", 1)
	got = seen.during(func() { out = b.mustApply(docs...) })
	if actions(out)["ConfigMap/c0007"] != Configured || got["GET configmaps"] != 1 || got["PATCH configmaps"] != 2 {
		t.Errorf("an edit in Git made %v", got)
	}
	if got = seen.during(func() { b.mustApply(docs...) }); total(got) != total(want) {
		t.Errorf("after it a poll makes %v", got)
	}

	// After a restart everything is compared once, and nothing written.
	b.in.Memory = NewMemory()
	if wrote := b.writesDuring(func() { got = seen.during(func() { b.mustApply(docs...) }) }); len(wrote) > 0 || got["PATCH configmaps"] != 201 {
		t.Errorf("after a restart the first poll made %v and wrote %v", got, wrote)
	}
	if got = seen.during(func() { b.mustApply(docs...) }); total(got) != total(want) {
		t.Errorf("the second poll after a restart makes %v", got)
	}
}

func TestWhatIsRememberedIsPutBackAllTheSame(t *testing.T) {
	b := newBench(t)
	b.in.Memory = NewMemory()
	docs := append(configMaps(3), stableService, canaryService, route, settings, webRollout)
	for range 3 {
		b.mustApply(docs...)
	}
	edit := func(name string, change func(*unstructured.Unstructured)) {
		t.Helper()
		live := b.get("v1", "ConfigMap", name)
		change(live)
		if err := b.client.Update(t.Context(), live, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	}
	edit("c0000", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"value": "by hand"} })
	edit("c0001", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	if err := b.client.Delete(t.Context(), b.get("v1", "ConfigMap", "c0002")); err != nil {
		t.Fatal(err)
	}
	kept := b.source()
	if err := b.client.Delete(t.Context(), b.get("apps/v1", "ControllerRevision", SourceName("web", kept.Hash))); err != nil {
		t.Fatal(err)
	}
	b.steer(60, 40)
	got := actions(b.mustApply(docs...))
	for name, want := range map[string]Action{"ConfigMap/c0000": Configured, "ConfigMap/c0001": Configured, "ConfigMap/c0002": Created,
		"ConfigMap/settings": Unchanged, "HTTPRoute/web": Unchanged, "Service/web-canary": Unchanged, "Rollout/web": Unchanged} {
		if got[name] != want {
			t.Errorf("%s was %s, not %s", name, got[name], want)
		}
	}
	if data, _, _ := unstructured.NestedStringMap(b.get("v1", "ConfigMap", "c0000").Object, "data"); data["value"] != "0" {
		t.Errorf("drift stays: %v", data)
	}
	if b.get("v1", "ConfigMap", "c0001").GetLabels()[v1alpha1.GitSyncNameLabel] != "sync" {
		t.Error("the label stays away")
	}
	if !b.exists("apps/v1", "ControllerRevision", SourceName("web", kept.Hash)) {
		t.Error("the source is not kept any more")
	}
	if diff := cmp.Diff([]int64{60, 40}, b.weights()); diff != "" {
		t.Error(diff)
	}
}

// What a claim is made of may change while the object that it is on does not.
func TestAClaimThatAppearsIsHeeded(t *testing.T) {
	b := newBench(t)
	b.in.Memory = NewMemory()
	hashed := strings.Replace(canaryService, "app: web", "app: web, pushback.dev/template-hash: '0123456789'", 1)
	plain := strings.Replace(webRollout, "canaryService: web-canary", "canaryService: other", 1)
	for range 2 {
		b.mustApply(stableService, hashed, route, settings, plain)
	}
	seen := b.watch("")
	got := seen.during(func() { b.mustApply(stableService, hashed, route, settings, webRollout) })
	if got["GET services"] != 2 { // both, because the routing that claims them has changed
		t.Errorf("the Services that are claimed otherwise now were not looked at: %v", got)
	}
}

// A definition is waited for until it is served, and not looked at from then on.
func TestASteadyPollOfADefinition(t *testing.T) {
	b := newBench(t)
	b.in.Memory = NewMemory()
	group := strings.ReplaceAll(b.namespace, "test-", "s") + ".example.com"
	definition := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things." + group + "}, spec: {group: " + group + ", scope: Namespaced, names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}"
	t.Cleanup(func() { _ = b.client.Delete(context.Background(), declare(t, definition)[0].Unstructured) })
	docs := []string{definition, "{apiVersion: " + group + "/v1, kind: Thing, metadata: {name: t}, spec: {}}"}
	seen := b.watch("")
	for range 3 {
		b.mustApply(docs...)
	}
	got := seen.during(func() { b.mustApply(docs...) })
	want := map[string]int{"LIST customresourcedefinitions": 1, "LIST things": 1, "LIST rollouts": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func (b *bench) tenant(verbs string) string {
	b.Helper()
	for _, o := range declare(b.TB,
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: tenant, namespace: "+b.namespace+"}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: tenant, namespace: "+b.namespace+"}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ["+verbs+"]}]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant, namespace: "+b.namespace+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}, subjects: [{kind: ServiceAccount, name: tenant}]}",
	) {
		if err := b.client.Create(b.Context(), o.Unstructured); err != nil {
			b.Fatal(err)
		}
	}
	return "system:serviceaccount:" + b.namespace + ":tenant"
}

func TestListsAreMadeAsTheTenant(t *testing.T) {
	for name, tc := range map[string]struct {
		verbs string
		want  map[string]int
	}{
		"may list":     {"get, list, create, patch", map[string]int{"LIST configmaps": 1}},
		"may not list": {"get, create, patch", map[string]int{"GET configmaps": 20}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.in.Memory = NewMemory()
			seen := b.watch(b.tenant(tc.verbs))
			docs := configMaps(20)
			b.mustApply(docs...)
			if b.mustApply(docs...); tc.want["LIST configmaps"] == 0 && !seen.users["system:serviceaccount:"+b.namespace+":tenant"] {
				t.Error("no list was tried as the tenant")
			}
			got := seen.during(func() { b.mustApply(docs...) })
			delete(got, "LIST rollouts") // with the controller's own rights
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			live := b.get("v1", "ConfigMap", "c0003")
			live.Object["data"] = map[string]any{"value": "by hand"}
			if err := b.client.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if got := actions(b.mustApply(docs...)); got["ConfigMap/c0003"] != Configured || got["ConfigMap/c0004"] != Unchanged {
				t.Errorf("drift was %v", got)
			}
		})
	}
}

// BenchmarkSteadyPoll prints the requests and the time of a poll that finds 1,000
// objects as they should be, beside those of the first apply and of the round
// after a restart.
func BenchmarkSteadyPoll(bb *testing.B) {
	b := newBench(bb)
	b.in.Memory = NewMemory()
	docs := configMaps(1000)
	seen := b.watch("")
	first := total(seen.during(func() { b.mustApply(docs...) }))
	b.in.Memory = NewMemory()
	restart := total(seen.during(func() { b.mustApply(docs...) }))
	steady := 0
	for bb.Loop() {
		steady = total(seen.during(func() { b.mustApply(docs...) }))
	}
	bb.ReportMetric(float64(steady), "requests/poll")
	bb.ReportMetric(float64(restart), "restart-requests")
	bb.ReportMetric(float64(first), "first-requests")
}

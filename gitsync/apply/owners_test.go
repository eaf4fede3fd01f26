package apply

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// another is a bench of a second GitSync in the same namespace. Both exist, and
// their inventories are in their status, as the controller writes it.
func (b *bench) another(name string) *bench {
	b.Helper()
	other := *b
	other.in.GitSync = types.NamespacedName{Namespace: b.namespace, Name: name}
	other.in.Inventory, other.in.Intend = nil, nil
	other.exist()
	return &other
}

// exist creates the GitSync of the bench.
func (b *bench) exist() {
	b.Helper()
	sync := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.in.GitSync.Name},
		Spec:       v1alpha1.GitSyncSpec{Interval: metav1.Duration{Duration: 1e9}, URL: "https://example.com/r.git"},
	}
	if err := b.client.Create(b.Context(), sync); err != nil {
		b.Fatal(err)
	}
}

// poll applies documents and writes the inventory down.
func (b *bench) poll(docs ...string) Out {
	b.Helper()
	out := b.apply(docs...)
	sync := &v1alpha1.GitSync{}
	if err := b.client.Get(b.Context(), b.in.GitSync, sync); err != nil {
		b.Fatal(err)
	}
	sync.Status.Inventory = &v1alpha1.ResourceInventory{Entries: out.Inventory}
	if err := b.client.Status().Update(b.Context(), sync); err != nil {
		b.Fatal(err)
	}
	return out
}

// owner of a ConfigMap, by its label.
func (b *bench) owner(name string) string {
	b.Helper()
	return b.get("v1", "ConfigMap", name).GetLabels()[v1alpha1.GitSyncNameLabel]
}

const theirs = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: theirs}}"

func TestASecondGitSyncIsRefused(t *testing.T) {
	first := newBench(t)
	first.exist()
	first.poll(settings)
	second := first.another("second")
	docs := []string{theirs, "{apiVersion: v1, kind: ConfigMap, metadata: {name: free}}"}
	for range 3 {
		wrote := first.writesDuring(func() {
			out := second.apply(docs...)
			var owned *OwnedError
			if len(out.Failures) != 1 || !errors.As(out.Failures[0], &owned) || owned.GitSync != first.in.GitSync || out.Failures[0].File != "0.yaml" {
				t.Fatalf("want one object refused, by its owner, got %v", out.Failures)
			}
			first.apply(settings)
		})
		for _, write := range wrote {
			if strings.Contains(write, "configmaps/settings") {
				t.Errorf("they fight: %s", write)
			}
		}
	}
	if !first.exists("v1", "ConfigMap", "free") || first.owner("settings") != "sync" {
		t.Error("the rest was not applied, or the refused object was taken")
	}
}

func TestTakingOver(t *testing.T) {
	for name, tc := range map[string]struct {
		// release is what the first GitSync does before the second's next poll.
		release func(first *bench)
		refused bool
	}{
		"it still declares it": {func(first *bench) { first.poll(settings) }, true},
		"dropped, with pruning": {func(first *bench) {
			if got := actions(first.poll()); got["ConfigMap/settings"] != HandedOver {
				first.Errorf("the first pruned it: %v", got)
			}
		}, false},
		"dropped, without pruning": {func(first *bench) { first.in.Prune = false; first.poll() }, false},
		"deleted": {func(first *bench) {
			sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: first.namespace, Name: first.in.GitSync.Name}}
			if err := first.client.Delete(first.Context(), sync); err != nil {
				first.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			first := newBench(t)
			first.exist()
			first.poll(settings)
			second := first.another("second")
			second.poll(theirs)
			uid := first.get("v1", "ConfigMap", "settings").GetUID()
			tc.release(first)
			out := second.poll(theirs)
			if tc.refused != (len(out.Failures) > 0) {
				t.Fatalf("refused: want %t, got %v", tc.refused, failures(out))
			}
			live := first.get("v1", "ConfigMap", "settings")
			if live.GetUID() != uid {
				t.Error("it was deleted on the way")
			}
			if tc.refused {
				return
			}
			data, _, _ := unstructured.NestedStringMap(live.Object, "data")
			if first.owner("settings") != "second" || data["a"] != "theirs" {
				t.Errorf("it was not taken over: %v", live.Object)
			}
			// What the second has taken the first can't prune, whatever its inventory says.
			first.in.Prune = true
			if out, err := first.applier.Apply(t.Context(), first.in); err != nil || actions(out)["ConfigMap/settings"] == Pruned || !first.exists("v1", "ConfigMap", "settings") {
				t.Errorf("the first pruned what is the second's: %v, %v", actions(out), err)
			}
		})
	}
}

// Both have it in their inventory, as two did that fought before there was a rule,
// or as one does that waits for it. The label decides, and without one the older.
func TestOwnersThatBothHaveIt(t *testing.T) {
	for name, tc := range map[string]struct {
		label string
		want  string
	}{
		"labelled as the first's":   {"sync", "sync"},
		"labelled as the second's":  {"another", "another"},
		"labelled by one that went": {"gone", "sync"},
		"without a label":           {"", "sync"},
	} {
		t.Run(name, func(t *testing.T) {
			first := newBench(t)
			first.exist()
			first.poll(settings)
			// Names that sort before the first's would win if age did not count; the
			// clock of creation has seconds.
			created := first.sync().CreationTimestamp
			second := first.another("another")
			for second.sync().CreationTimestamp.Equal(&created) {
				if err := second.client.Delete(t.Context(), second.sync()); err != nil {
					t.Fatal(err)
				}
				second.exist()
			}
			second.poll(theirs)
			live := first.get("v1", "ConfigMap", "settings")
			labels := map[string]string{}
			if tc.label != "" {
				labels = map[string]string{v1alpha1.GitSyncNameLabel: tc.label, v1alpha1.GitSyncNamespaceLabel: first.namespace}
			}
			live.SetLabels(labels)
			if err := first.client.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				second.poll(theirs)
				first.poll(settings)
				if got := first.owner("settings"); got != tc.want {
					t.Errorf("it is %s's, not %s's", got, tc.want)
				}
			}
			if wrote := first.writesDuring(func() { second.apply(theirs); first.apply(settings) }); len(wrote) > 0 {
				t.Errorf("they go on writing: %v", wrote)
			}
		})
	}
}

func (b *bench) sync() *v1alpha1.GitSync {
	b.Helper()
	sync := &v1alpha1.GitSync{}
	if err := b.client.Get(b.Context(), b.in.GitSync, sync); err != nil {
		b.Fatal(err)
	}
	return sync
}

// Who may only read an object can neither take it nor keep its owner from pruning it.
func TestAReaderHoldsNothing(t *testing.T) {
	first := newBench(t)
	first.exist()
	first.poll(settings)
	second := first.another("second")
	user := first.tenant("get, list")
	second.applier = &Applier{Claims: first.applier.Claims}
	second.watch(user)
	if out := second.poll(theirs); len(out.Failures) != 1 || len(out.Inventory) != 0 {
		t.Errorf("want it refused and not noted, got %v and %v", failures(out), out.Inventory)
	}
	if got := actions(first.poll()); got["ConfigMap/settings"] != Pruned {
		t.Errorf("the owner's pruning was %v", got)
	}
}

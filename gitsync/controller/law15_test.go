package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	slots       = 4 // files of a directory
	treeRounds  = 30
	treeBudget  = 30 * time.Second
	pinnedSlot  = 0 // the ConfigMap of this slot is named by a ReplicaSet
	hashOfInUse = "0123456789"
)

var syncedDirs = []string{"one", "two"}

// unusable are files that leave a tree unusable, each for a reason of its own.
var unusable = map[string]func(name string) string{
	"no YAML":          func(string) string { return "kind: [\n" },
	"no name":          func(string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n" },
	"no kind":          func(name string) string { return "metadata:\n  name: " + name + "\n" },
	"declared twice":   func(name string) string { return configMap(name, "1") + "---\n" + configMap(name, "2") },
	"an unknown field": func(name string) string { return rollout(name, "app:1") + "  strategie: {}\n" },
	"an invalid Rollout": func(name string) string {
		return strings.Replace(rollout(name, "app:1"), "setWeight: 20", "setWeight: 200", 1)
	},
	"a record of ours": func(name string) string {
		return "apiVersion: pushback.dev/v1alpha1\nkind: AnalysisRun\nmetadata:\n  name: " + name + "\nspec: {}\n"
	},
	"broken in its second document": func(name string) string { return configMap(name, "1") + "---\n\tnot: yaml\n" },
}

// treeFile is one file: a ConfigMap, an AnalysisTemplate, a Rollout that names
// that of the next slot, or what can't be used.
type treeFile struct {
	what  string // "config", "template", "rollout", "" for none, or a key of unusable
	value int
}

func (f treeFile) usable() bool { return unusable[f.what] == nil }

const analysisTemplate = `apiVersion: pushback.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: %s}
spec:
  metrics:
  - {name: rate, successCondition: "result[0] > 0.9", provider: {prometheus: {address: "http://prometheus", query: "%d"}}}
`

// treeChange puts a file into a slot.
type treeChange struct {
	dir  string
	slot int
	treeFile
}

// treeHistory makes the changes of each round.
func treeHistory(rounds int) *rapid.Generator[[][]treeChange] {
	kinds := slices.Sorted(maps.Keys(unusable))
	one := rapid.Custom(func(t *rapid.T) treeChange {
		what := rapid.SampledFrom([]string{"config", "config", "template", "template", "rollout", "rollout", "", "", "unusable"}).Draw(t, "what")
		if what == "unusable" {
			what = rapid.SampledFrom(kinds).Draw(t, "unusable")
		}
		return treeChange{
			dir: rapid.SampledFrom(syncedDirs).Draw(t, "dir"), slot: rapid.IntRange(0, slots-1).Draw(t, "slot"),
			treeFile: treeFile{what: what, value: rapid.IntRange(1, 9).Draw(t, "value")},
		}
	})
	return rapid.SliceOfN(rapid.SliceOfN(one, 1, 4), rounds, rounds)
}

// syncedTree is what a directory declares, and what the cluster is to hold of it.
type syncedTree struct {
	dir   string
	files [slots]treeFile
	live  map[string]string // value by "Kind/name"
}

func (s *syncedTree) name(slot int) string { return fmt.Sprintf("%s-%d", s.dir, slot%slots) }

func (s *syncedTree) path(slot int) string { return fmt.Sprintf("%s/%d.yaml", s.dir, slot) }

func (s *syncedTree) text(slot int) string {
	f := s.files[slot]
	switch f.what {
	case "":
		return ""
	case "config":
		return configMap(s.name(slot), fmt.Sprint(f.value))
	case "rollout":
		return rollout(s.name(slot), fmt.Sprintf("app:%d", f.value)) + "      - analysis: {templates: [{templateName: " + s.name(slot+1) + "}]}\n"
	case "template":
		return fmt.Sprintf(analysisTemplate, s.name(slot), f.value)
	}
	return unusable[f.what](s.name(slot))
}

// wrong are the files that can't be used.
func (s *syncedTree) wrong() []string {
	var out []string
	for slot, f := range s.files {
		if !f.usable() {
			out = append(out, s.path(slot))
		}
	}
	return out
}

// apply is what a usable tree makes of the cluster: all that it declares, and
// nothing else but what a template in use names.
func (s *syncedTree) apply() {
	declared, used := map[string]string{}, map[string]bool{"ConfigMap/one-" + fmt.Sprint(pinnedSlot): true}
	for slot, f := range s.files {
		switch f.what {
		case "config":
			declared["ConfigMap/"+s.name(slot)] = fmt.Sprint(f.value)
		case "rollout":
			declared["Rollout/"+s.name(slot)] = fmt.Sprintf("app:%d", f.value)
			used["AnalysisTemplate/"+s.name(slot+1)] = true
		case "template":
			declared["AnalysisTemplate/"+s.name(slot)] = fmt.Sprint(f.value)
		}
	}
	for id, value := range s.live {
		if _, still := declared[id]; !still && used[id] {
			declared[id] = value
		}
	}
	s.live = declared
}

// held is what the cluster holds of a GitSync: values and resourceVersions.
func (l *lab) held(sync string) (values, versions map[string]string) {
	l.Helper()
	values, versions = map[string]string{}, map[string]string{}
	of := []client.ListOption{client.InNamespace(l.namespace), client.MatchingLabels{v1alpha1.GitSyncNameLabel: sync}}
	var configs corev1.ConfigMapList
	var rollouts v1alpha1.RolloutList
	var templates v1alpha1.AnalysisTemplateList
	var kept appsv1.ControllerRevisionList
	for _, list := range []client.ObjectList{&configs, &rollouts, &templates} {
		if err := l.client.List(l.Context(), list, of...); err != nil {
			l.Fatal(err)
		}
	}
	if err := l.client.List(l.Context(), &kept, client.InNamespace(l.namespace)); err != nil {
		l.Fatal(err)
	}
	for _, c := range configs.Items {
		values["ConfigMap/"+c.Name], versions["ConfigMap/"+c.Name] = c.Data["value"], c.ResourceVersion
	}
	for _, r := range rollouts.Items {
		_, rest, _ := strings.Cut(string(r.Spec.Template.Raw), `"image":"`)
		image, _, _ := strings.Cut(rest, `"`)
		values["Rollout/"+r.Name], versions["Rollout/"+r.Name] = image, r.ResourceVersion
	}
	for _, a := range templates.Items {
		values["AnalysisTemplate/"+a.Name], versions["AnalysisTemplate/"+a.Name] = a.Spec.Metrics[0].Provider.Prometheus.Query, a.ResourceVersion
	}
	for _, k := range kept.Items {
		if strings.HasPrefix(k.Name, sync+"-") {
			versions["ControllerRevision/"+k.Name] = k.ResourceVersion
		}
	}
	return values, versions
}

// attempted asks for a reconcile and returns the GitSync as it is after it.
func (l *lab) attempted(name, token string) *v1alpha1.GitSync {
	l.Helper()
	sync := &v1alpha1.GitSync{}
	l.wait(func() string {
		if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, sync); err != nil {
			l.Fatal(err)
		}
		if sync.Status.LastHandledReconcileAt != token {
			return fmt.Sprintf("GitSync %s did not handle %s: %+v", name, token, sync.Status)
		}
		return ""
	})
	return sync
}

// TestLaw15_TreesAreAppliedWholeOrNotAtAll lets two directories of one repository
// change at random, with files that can't be used among them. A tree with one
// changes no object, prunes none and names the file, while the other directory
// goes on; repaired, it is applied whole; and what a template in use names stays.
func TestLaw15_TreesAreAppliedWholeOrNotAtAll(t *testing.T) {
	seed := int(time.Now().UnixNano() % 1e9)
	t.Logf("the history is that of seed %d", seed)
	l := newLab(t)
	l.useByReplicaSet("one-" + fmt.Sprint(pinnedSlot))
	l.commit("Before all", map[string]string{"one/.keep": "-", "two/.keep": "-"})
	trees := map[string]*syncedTree{}
	syncs := map[string]*v1alpha1.GitSync{}
	for _, dir := range syncedDirs {
		trees[dir] = &syncedTree{dir: dir, live: map[string]string{}}
		syncs[dir] = l.sync(dir, func(s *v1alpha1.GitSync) {
			s.Spec.Path, s.Spec.Interval = dir, metav1.Duration{Duration: time.Hour}
		})
	}
	l.start()
	began := time.Now()
	for round, changes := range treeHistory(treeRounds).Example(seed) {
		if time.Since(began) > treeBudget {
			t.Logf("stopped after %d of %d rounds: the machine is busy", round, treeRounds)
			break
		}
		l.change(trees, changes)
		before := map[string]map[string]string{}
		for dir, sync := range syncs {
			_, before[dir] = l.held(dir)
			l.annotate(sync, meta.ReconcileRequestAnnotation, fmt.Sprint(round))
		}
		for _, dir := range syncedDirs {
			l.mustBeWhole(trees[dir], l.attempted(dir, fmt.Sprint(round)), before[dir])
		}
		if t.Failed() {
			t.Fatalf("in round %d, after %+v", round, changes)
		}
	}
}

// change commits what a round changes.
func (l *lab) change(trees map[string]*syncedTree, changes []treeChange) {
	l.Helper()
	before, files := map[string]string{}, map[string]string{}
	for _, c := range changes {
		tree := trees[c.dir]
		path := tree.path(c.slot)
		if _, touched := before[path]; !touched {
			before[path] = tree.text(c.slot)
		}
		tree.files[c.slot] = c.treeFile
		files[path] = tree.text(c.slot)
	}
	maps.DeleteFunc(files, func(path, text string) bool { return text == before[path] })
	l.commit("Change the trees", files)
}

// mustBeWhole: the cluster holds all of a usable tree, and of one that can't be
// used nothing was touched.
func (l *lab) mustBeWhole(tree *syncedTree, sync *v1alpha1.GitSync, before map[string]string) {
	l.Helper()
	ready := apimeta.FindStatusCondition(sync.Status.Conditions, meta.ReadyCondition)
	values, versions := l.held(tree.dir)
	wrong := tree.wrong()
	if len(wrong) == 0 {
		tree.apply()
		if ready == nil || ready.Status != metav1.ConditionTrue {
			l.Errorf("GitSync %s is %+v with a tree that can be used", tree.dir, ready)
		}
	} else {
		if ready == nil || ready.Reason != v1alpha1.ReasonInvalidManifest || !slices.ContainsFunc(wrong, func(file string) bool { return strings.Contains(ready.Message, file) }) {
			l.Errorf("GitSync %s is %+v, want %s with one of %v", tree.dir, ready, v1alpha1.ReasonInvalidManifest, wrong)
		}
		if diff := cmp.Diff(before, versions); diff != "" {
			l.Errorf("%v can't be used, and objects of GitSync %s were written (-before +after):\n%s", wrong, tree.dir, diff)
		}
	}
	if diff := cmp.Diff(tree.live, values); diff != "" {
		l.Errorf("what the cluster holds of GitSync %s (-want +got):\n%s", tree.dir, diff)
	}
	for id := range values {
		kind, name, _ := strings.Cut(id, "/")
		if !slices.ContainsFunc(sync.Status.Inventory.Entries, func(r v1alpha1.ResourceRef) bool {
			return strings.Contains(r.ID, "_"+name+"_") && strings.HasSuffix(r.ID, "_"+kind)
		}) {
			l.Errorf("%s is missing in the inventory of GitSync %s", id, tree.dir)
		}
	}
}

// useByReplicaSet makes a version's ReplicaSet that names a ConfigMap.
func (l *lab) useByReplicaSet(config string) {
	l.Helper()
	labels := map[string]string{"app": "inuse", v1alpha1.TemplateHashLabel: hashOfInUse}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "inuse-" + hashOfInUse, Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Image: "app:1",
				EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: config}}}},
			}}}},
		},
	}
	if err := l.client.Create(l.Context(), set); err != nil {
		l.Fatal(err)
	}
}

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
)

// run is one apply of one tree.
type run struct {
	*Applier
	in     In
	claims claims
	scaled map[types.NamespacedName]bool
	// workloads of the tree that Rollouts may take their templates from.
	workloads map[ref]*object
	// skipped are the objects that are left alone.
	skipped refs
	// failed are the objects that could not be applied, for the Rollouts that name them.
	failed refs
	// noted is the inventory as it was intended last: what may exist by our doing.
	noted    inventory
	recalled recalled
	owners   owners
	out      Out
}

// Apply applies a tree: Namespaces and CustomResourceDefinitions first, then the
// rest, Rollouts last and none before what it names; then it prunes, when nothing
// failed.
//
// What the API server refuses is in Out.Failures, and doesn't stop the others.
// The error is for what could not be read and left everything as it was.
func (a *Applier) Apply(ctx context.Context, in In) (Out, error) {
	old, err := parseInventory(in.Inventory)
	if err != nil {
		return Out{}, err
	}
	r := &run{Applier: a, in: in, failed: refs{}, skipped: refs{}, noted: maps.Clone(old)}
	stages := r.prepareAll()
	r.workloads = workloadsOf(stages)
	if err := r.readCluster(ctx, stages); err != nil {
		return Out{}, err
	}
	if err := r.recall(ctx, stages); err != nil {
		return Out{}, err
	}
	for _, stage := range stages {
		if err := r.intend(ctx, stage); err != nil {
			return Out{}, err
		}
		for _, o := range stage {
			if !r.failed[o.id()] {
				r.apply(ctx, o)
			}
		}
		if err := ctx.Err(); err != nil {
			return Out{}, err
		}
		r.waitEstablished(ctx, stage)
	}
	return r.finish(ctx, old, stages)
}

// intend notes the objects of a stage that are new in the inventory, before they
// are made. What the API server would not take is a failure here and isn't noted:
// it does not exist by our doing, and who may not read it could never prune it.
// What is another GitSync's is a failure and is noted all the same, if it could be
// written: the other one then leaves it to this one instead of pruning it.
func (r *run) intend(ctx context.Context, stage []*object) error {
	before := len(r.noted)
	for _, o := range stage {
		if _, known := r.noted[o.id()]; known {
			continue
		}
		if err := r.try(ctx, o); err != nil {
			r.failPrepared(o, err)
			if owned := (*OwnedError)(nil); !errors.As(err, &owned) {
				continue
			}
		}
		r.noted[o.id()] = o.declared.GroupVersionKind().Version
	}
	if r.in.Intend == nil || len(r.noted) == before {
		return ctx.Err()
	}
	return r.in.Intend(ctx, r.noted.entries())
}

// try asks whether an object could be made where there is none, and otherwise
// whether it may be written by this account and taken by this GitSync.
func (r *run) try(ctx context.Context, o *object) error {
	live, err := r.get(ctx, o.declared)
	if err != nil || disabled(o.declared, nil) {
		return err
	}
	err = r.ssa(ctx, o.declared.DeepCopy(), client.DryRunAll)
	if live == nil || apierrors.IsForbidden(err) {
		return err
	}
	return r.mayTake(ctx, o.id(), live) // what else is wrong shows when it is applied
}

// prepareAll sorts the objects into stages. Those that can't be prepared are failures.
func (r *run) prepareAll() [3][]*object {
	var stages [3][]*object
	scopes := scopesOf(r.in.Objects)
	for _, o := range r.in.Objects {
		prepared, err := r.prepare(r.in, o, scopes)
		if err != nil {
			r.fail(o, err)
			continue
		}
		stage := 1
		switch {
		case isNamespace(prepared.declared), isDefinition(prepared.declared):
			stage = 0
		case isRollout(prepared.declared):
			stage = 2
		}
		stages[stage] = append(stages[stage], prepared)
	}
	for _, stage := range stages {
		sort.SliceStable(stage, func(i, j int) bool {
			return ssa.SortableUnstructureds{stage[i].declared, stage[j].declared}.Less(0, 1)
		})
	}
	return stages
}

// readCluster reads what decides how objects are applied: the Rollouts that
// route through them, and the scalers of Rollouts.
func (r *run) readCluster(ctx context.Context, stages [3][]*object) error {
	var namespaces, routed []string
	for _, o := range slices.Concat(stages[1], stages[2]) {
		if ns := o.declared.GetNamespace(); ns != "" && !slices.Contains(namespaces, ns) {
			namespaces = append(namespaces, ns)
		}
	}
	var declared []*v1alpha1.Rollout
	for _, o := range stages[2] {
		rollout, err := asRollout(o.declared)
		if err != nil {
			return err
		}
		declared = append(declared, rollout)
		if !slices.Contains(routed, rollout.Namespace) {
			routed = append(routed, rollout.Namespace)
		}
	}
	live, err := r.liveRollouts(ctx, namespaces)
	if err != nil {
		return err
	}
	r.claims = r.claimsOf(declared, live)
	r.scaled, err = r.Applier.scaled(ctx, stages[1], routed)
	return err
}

func (r *run) fail(o gitsync.Object, err error) {
	u := &unstructured.Unstructured{Object: o.Unstructured.Object}
	named := refOf(u)
	if named.Namespace == "" {
		named.Namespace = r.in.GitSync.Namespace
	}
	if r.in.TargetNamespace != "" {
		named.Namespace = r.in.TargetNamespace
	}
	r.failed[named] = true
	r.out.Failures = append(r.out.Failures, &Failure{File: o.File, Document: o.Document, Object: gitsync.Describe(u), Err: hideSecret(u, err)})
}

func (r *run) failPrepared(o *object, err error) {
	r.failed[o.id()] = true
	r.out.Failures = append(r.out.Failures, &Failure{File: o.File, Document: o.Document, Object: o.id().String(), Err: hideSecret(o.declared, err)})
}

// outcome is what became of an object, and how it is afterwards.
type outcome struct {
	action Action
	object *unstructured.Unstructured
}

// apply applies one object, unless it is as it is remembered, and notes what became of it.
func (r *run) apply(ctx context.Context, o *object) {
	of, err := r.digestOf(o)
	if err != nil {
		r.failPrepared(o, err)
		return
	}
	if r.recalls(o, of) {
		o.recalled = true
		r.out.Changes = append(r.out.Changes, Change{Object: o.id().String(), Action: Unchanged})
		return
	}
	apply := r.applyObject
	if isRollout(o.declared) {
		apply = r.applyRollout
	}
	done, err := apply(ctx, o, of)
	if err != nil {
		r.failPrepared(o, err)
		return
	}
	r.skipped[o.id()] = done.action == Skipped
	r.remember(o, done, of)
	r.out.Changes = append(r.out.Changes, Change{Object: o.id().String(), Action: done.action})
}

// finish prunes and makes the inventory.
func (r *run) finish(ctx context.Context, old inventory, stages [3][]*object) (Out, error) {
	applied := inventory{}
	for _, o := range slices.Concat(stages[:]...) {
		if _, intended := r.noted[o.id()]; intended {
			applied[o.id()] = o.declared.GroupVersionKind().Version
		}
	}
	left := inventory{}
	for id, version := range old {
		if _, still := applied[id]; !still {
			left[id] = version
		}
	}
	complete := len(r.out.Failures) == 0 && len(r.in.Rejected) == 0
	switch {
	case !complete:
		for id, version := range left {
			applied[id] = version
		}
	case r.in.Prune:
		kept, err := r.prune(ctx, left)
		if err != nil {
			return Out{}, fmt.Errorf("finding what is still in use: %w", err)
		}
		for id := range kept {
			applied[id] = left[id]
		}
	}
	r.in.Memory.keepOnly(applied)
	r.out.Inventory = applied.entries()
	return r.out, nil
}

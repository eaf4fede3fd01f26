package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Windows of the budgets.
const (
	rolloutWindow    = 24 * time.Hour
	repositoryWindow = time.Hour
)

// overBudget says which budget is used up; empty when one more is allowed. It
// counts what was pushed, by the Reverts themselves. Budgets bound what happens
// without a person: an undo has none, and counts in none.
func (w *work) overBudget(ctx context.Context) (string, error) {
	if w.revert.Spec.Undo != nil {
		return "", nil
	}
	var reverts v1alpha1.RevertList
	if err := w.own.List(ctx, &reverts); err != nil {
		return "", err
	}
	syncs, err := w.neighbours(ctx)
	if err != nil {
		return "", err
	}
	same := map[v1alpha1.RevertGitSync]bool{w.revert.Spec.GitSync: true}
	for _, sync := range syncs {
		same[v1alpha1.RevertGitSync{Namespace: sync.Namespace, Name: sync.Name}] = true
	}
	var ofRollout, ofBranch int32
	now := w.options.Now()
	for _, other := range reverts.Items {
		if other.Status.PushedAt == nil || other.UID == w.revert.UID || other.Spec.Undo != nil {
			continue
		}
		age := now.Sub(other.Status.PushedAt.Time)
		ro, mine := other.Spec.Rollout, w.revert.Spec.Rollout
		if ro.Namespace == mine.Namespace && ro.Name == mine.Name && age < rolloutWindow {
			ofRollout++
		}
		if same[other.Spec.GitSync] && age < repositoryWindow {
			ofBranch++
		}
	}
	budget := w.settings.Budget
	switch {
	case ofRollout >= *budget.PerRollout:
		return fmt.Sprintf("%d reverts of this Rollout were pushed in 24 hours, and revert.budget.perRollout is %d: revert by hand, or raise it", ofRollout, *budget.PerRollout), nil
	case ofBranch >= *budget.PerRepository:
		return fmt.Sprintf("%d reverts were pushed to this branch in one hour, and revert.budget.perRepository is %d: revert by hand, or raise it", ofBranch, *budget.PerRepository), nil
	}
	return "", nil
}

// neighbours are the other GitSyncs of the same repository and branch.
func (w *work) neighbours(ctx context.Context) ([]v1alpha1.GitSync, error) {
	var list v1alpha1.GitSyncList
	if err := w.own.List(ctx, &list); err != nil {
		return nil, err
	}
	var out []v1alpha1.GitSync
	for _, sync := range list.Items {
		if sync.UID != w.sync.UID && sameURL(sync.Spec.URL, w.sync.Spec.URL) && branchOf(&sync) == branchOf(w.sync) {
			out = append(out, sync)
		}
	}
	return out, nil
}

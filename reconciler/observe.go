package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/templates"
	"github.com/pushback-dev/pushback/revertspec"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/templatehash"
	"github.com/pushback-dev/pushback/validation"
)

// observed is the input of a decision with the objects that it was read from, so
// that every write can carry the uid and resourceVersion of what was read.
type observed struct {
	in plan.In
	// rollout has the template of its workloadRef, and the selector if it has none.
	rollout *v1alpha1.Rollout
	sets    map[string]*appsv1.ReplicaSet // by template hash
	runs    map[string]*v1alpha1.AnalysisRun

	experiments map[string]*v1alpha1.Experiment
	pods        map[string]types.UID // by name, while a restart is under way
	router      routers.Router
	target      routers.Target
	// workloads are what spec.workloadRef names and what was scaled down, by kind and name.
	workloads map[string]*unstructured.Unstructured
	// fixedHash is the version whose template stands in for one that can't be read.
	fixedHash string
	// putOff is true when the status is to be written by a later pass.
	putOff bool
	// templates are the AnalysisTemplates that the spec names, merged per use.
	templates templates.Set
}

func (r *Reconciler) observe(ctx context.Context, rollout *v1alpha1.Rollout) (*observed, error) {
	seen := &observed{rollout: rollout, in: plan.In{
		Now:        r.Now(),
		Namespace:  rollout.Namespace,
		Name:       rollout.Name,
		Generation: rollout.Generation,
		Deleting:   !rollout.DeletionTimestamp.IsZero(),
		Verbs:      verbs(rollout),
		Spec:       rollout.Spec,
		Status:     rollout.Status,
		Replicas:   sizeOf(rollout),
	}}
	steps := []func(context.Context, *observed) error{
		r.observeSource, r.observeWorkloads, r.observeSpec, r.observeTemplate, r.observeReplicaSets, r.observeSelector, r.observeSides, r.observeTraffic, r.observeOwners, r.observeRouting,
		r.observeServices, r.observeTemplates, r.observeRuns, r.observeExperiments, r.observeReverts, r.observeDryRun,
		r.observePods, r.observeEndpoints,
	}
	for _, step := range steps {
		if err := step(ctx, seen); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// observeSpec says what is wrong with the spec, once its template is known.
func (r *Reconciler) observeSpec(_ context.Context, seen *observed) error {
	for _, p := range validation.Resolved(seen.rollout.Spec) {
		seen.in.Invalid = append(seen.in.Invalid, p.String())
	}
	return nil
}

func verbs(rollout *v1alpha1.Rollout) map[string]string {
	found := map[string]string{}
	for _, key := range []string{
		v1alpha1.PromoteAnnotation, v1alpha1.PromoteFullAnnotation, v1alpha1.AbortAnnotation,
		v1alpha1.AbortKeepGitAnnotation, v1alpha1.RetryAnnotation, v1alpha1.PauseAnnotation,
		v1alpha1.ResumeAnnotation, v1alpha1.RestartAnnotation,
	} {
		if value, ok := rollout.Annotations[key]; ok {
			found[key] = value
		}
	}
	return found
}

// observeSource reads what gitsync wrote. An annotation that can't be read is
// treated as a Rollout that doesn't come from Git: it can't be reverted.
func (r *Reconciler) observeSource(_ context.Context, seen *observed) error {
	text, ok := seen.rollout.Annotations[v1alpha1.SourceAnnotation]
	if !ok {
		return nil
	}
	var source v1alpha1.Source
	if err := json.Unmarshal([]byte(text), &source); err != nil {
		seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf(
			"metadata.annotations[%s]: not the JSON that gitsync writes: %v; remove the annotation and it is written again", v1alpha1.SourceAnnotation, err))
		return nil
	}
	namespace, name, _ := strings.Cut(source.GitSync, "/")
	seen.in.Source = &plan.Source{
		Hash: source.Hash, Revision: source.Revision, Subject: source.Subject, RetryHashes: source.Retry,
		GitSyncNamespace: namespace, GitSyncName: name,
	}
	seen.in.Template.Irreversible = source.Irreversible
	return nil
}

func (r *Reconciler) observeTemplate(_ context.Context, seen *observed) error {
	template := seen.rollout.Spec.Template
	if template == nil {
		return nil // the CRD or validation has said so
	}
	hash, err := templatehash.Hash(templatehash.Version, template.Raw)
	if err != nil {
		seen.in.Invalid = append(seen.in.Invalid, "spec.template: "+err.Error())
		return nil
	}
	var marked struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(template.Raw, &marked); err != nil {
		seen.in.Invalid = append(seen.in.Invalid, "spec.template.metadata: "+err.Error())
	}
	byTrailer := seen.in.Template.Irreversible && seen.in.Source.Hash == hash
	byTemplate := marked.Metadata.Annotations[v1alpha1.IrreversibleAnnotation] == "true"
	if seen.fixedHash != "" {
		hash = seen.fixedHash
	}
	seen.in.Template = plan.Template{Hash: hash, Irreversible: byTrailer || byTemplate}
	return nil
}

func (r *Reconciler) observeRouting(ctx context.Context, seen *observed) error {
	canary := seen.in.Spec.Strategy.Canary
	if canary == nil || canary.TrafficRouting == nil {
		return nil
	}
	router, err := r.RouterFor(canary.TrafficRouting)
	if err != nil {
		seen.in.Invalid = append(seen.in.Invalid, err.Error())
		// Still routed, by a router that can't be told: pod counts must not take over.
		seen.in.Routing = &plan.Routing{Err: err.Error()}
		return nil
	}
	if router == nil {
		return nil
	}
	seen.router = router
	seen.target = routers.Target{
		Rollout:       types.NamespacedName{Namespace: seen.rollout.Namespace, Name: seen.rollout.Name},
		StableService: canary.StableService,
		CanaryService: canary.CanaryService,
		Routing:       canary.TrafficRouting,
	}
	live, err := router.Observe(ctx, seen.target)
	if err != nil && seen.in.Leaving != nil && unroutable(err) {
		return nil
	}
	var missing *routers.NotFoundError
	var invalid *routers.InvalidError
	var config *routers.ConfigError
	switch {
	case err == nil:
		seen.in.Routing = &plan.Routing{Observed: live}
	case errors.As(err, &missing):
		seen.in.Missing = append(seen.in.Missing, missing.Error())
		seen.in.Routing = &plan.Routing{Err: missing.Error()}
	case errors.As(err, &invalid), errors.As(err, &config):
		seen.in.Invalid = append(seen.in.Invalid, err.Error())
		seen.in.Routing = &plan.Routing{Err: err.Error()}
	case ctx.Err() != nil:
		return fmt.Errorf("observing the routing: %w", err)
	default:
		seen.in.Routing = &plan.Routing{Err: err.Error()}
	}
	return nil
}

func (r *Reconciler) observeReverts(ctx context.Context, seen *observed) error {
	if seen.in.Source != nil {
		on, err := r.revertReasons(ctx, seen)
		if err != nil {
			return err
		}
		seen.in.RevertOn = on
	}
	var list v1alpha1.RevertList
	if err := r.Client.List(ctx, &list, client.InNamespace(seen.rollout.Namespace),
		client.MatchingLabels{v1alpha1.RolloutNameLabel: seen.rollout.Name}); err != nil {
		return fmt.Errorf("listing Reverts: %w", err)
	}
	for _, revert := range list.Items {
		if revert.Spec.Undo != nil {
			continue // it is about no rejected version
		}
		if uid := revert.Spec.Rollout.UID; uid != "" && uid != string(seen.rollout.UID) {
			// Of an earlier Rollout of the same name: it says nothing about this one,
			// but its name is taken, so that attempts are counted on from it.
			seen.in.Reverts = append(seen.in.Reverts, plan.Revert{Name: revert.Name, Attempt: revert.Spec.Attempt})
			continue
		}
		phase := revert.Status.Phase
		if phase == "" {
			phase = v1alpha1.RevertPending
		}
		seen.in.Reverts = append(seen.in.Reverts, plan.Revert{
			Name: revert.Name, Hash: revert.Spec.Rejected, Attempt: revert.Spec.Attempt, Phase: phase,
			Reason: revert.Status.Reason, Message: revert.Status.Message, Commit: revert.Status.Commit,
		})
	}
	return nil
}

// revertReasons are the reasons that are reverted; none when the GitSync is gone
// or says so.
func (r *Reconciler) revertReasons(ctx context.Context, seen *observed) ([]v1alpha1.AbortReason, error) {
	sync := &v1alpha1.GitSync{}
	key := types.NamespacedName{Namespace: seen.in.Source.GitSyncNamespace, Name: seen.in.Source.GitSyncName}
	if err := r.Client.Get(ctx, key, sync); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading GitSync %s: %w", key, err)
	}
	effective := revertspec.Effective(sync.Spec.Revert, seen.rollout.Spec.Revert)
	if effective.Mode == v1alpha1.RevertNone {
		return nil, nil
	}
	return effective.On, nil
}

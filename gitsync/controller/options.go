package controller

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// Options of both controllers.
type Options struct {
	// RouterFor gives the router that a Rollout names; nil and no error when it names none.
	RouterFor func(*v1alpha1.RolloutTrafficRouting) (routers.Router, error)
	// DefaultServiceAccount is impersonated by GitSyncs that name none, in their own
	// namespace; empty applies them with the controller's own rights.
	DefaultServiceAccount string
	// ClusterName is compared with spec.revert.owner.
	ClusterName string
	// AllowFileURLs allows repositories on the controller's own disk.
	AllowFileURLs bool
	// Concurrent reconciles of each controller. Default 1.
	Concurrent int
	// Now is the clock, in whole seconds. Default the system's.
	Now func() time.Time
}

// SetupWithManager sets up the controllers of GitSyncs and of Reverts.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Now().Truncate(time.Second) }
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), autoscalingv2.AddToScheme(scheme)); err != nil {
		return err
	}
	// Not the manager's client: what is read here decides what is written and
	// pruned, and must not come from a cache.
	own, err := client.New(mgr.GetConfig(), client.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making the client of the Git controllers: %w", err)
	}
	git := &repositories{secrets: own, allowFiles: o.AllowFileURLs, stores: map[string]*sharedStore{}, users: map[types.NamespacedName]string{}}
	syncs := &syncReconciler{
		own: own, git: git, options: o, events: mgr.GetEventRecorder("pushback-gitsync"),
		clients: &tenants{config: mgr.GetConfig(), own: own},
		polls:   make(chan event.GenericEvent, pollQueue),
		known:   map[types.NamespacedName]*rendered{}, memories: map[types.NamespacedName]*memory{},
	}
	if err := syncs.setUp(mgr); err != nil {
		return fmt.Errorf("setting up the GitSync controller: %w", err)
	}
	reverts := &revertReconciler{own: own, git: git, options: o, events: mgr.GetEventRecorder("pushback-revert"), poll: syncs.askPoll}
	if err := reverts.setUp(mgr); err != nil {
		return fmt.Errorf("setting up the Revert controller: %w", err)
	}
	return nil
}

func (o Options) controller() controller.Options {
	return controller.Options{MaxConcurrentReconciles: max(o.Concurrent, 1)}
}

// claims are those of a Rollout's router, or of its Services where it names none.
func (o Options) claims(target routers.Target) []routers.Claim {
	router, err := o.RouterFor(target.Routing)
	if err != nil || router == nil {
		// Settings that can't be used were refused before; a live Rollout that has
		// such all the same routes by its Services alone.
		return routers.ServiceClaims(target)
	}
	return router.Claims(target)
}

// note is an event of something that has changed. No note holds a secret: errors
// of Git are scrubbed where they arise.
func note(recorder events.EventRecorder, object runtime.Object, kind, reason, action, message string) {
	recorder.Eventf(object, nil, kind, reason, action, "%s", truncate(message, maxNote))
}

// maxNote is the most bytes of an event's note.
const maxNote = 1024

// maxMessage is the most bytes of a condition's message.
const maxMessage = 4096

func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const tail = " …"
	cut := limit - len(tail)
	for cut > 0 && text[cut]&0xc0 == 0x80 { // not in the middle of a character
		cut--
	}
	return text[:cut] + tail
}

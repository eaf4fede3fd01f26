package analysisrun

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// defaultWorkers is how many runs are measured at a time: measuring is waiting.
	defaultWorkers = 30
	// defaultMeasureTimeout bounds one call of a provider.
	defaultMeasureTimeout = 5 * time.Minute
)

// Options of the controller.
type Options struct {
	// Providers gives the provider that a metric names; see ByName. Required.
	Providers func(v1alpha1.MetricProvider) (analysis.Provider, error)
	// Now is the clock. Required.
	Now func() time.Time
	// MeasureTimeout bounds one call of a provider, whatever its own timeout is.
	// Default 5 minutes.
	MeasureTimeout time.Duration
	// Controller of controller-runtime. MaxConcurrentReconciles defaults to 30.
	Controller controller.Options
}

// SetupWithManager registers the controller. It wants get, list, watch and delete on
// analysisruns, patch on analysisruns/status, get on secrets, and create and patch on
// events.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Providers == nil || o.Now == nil {
		return fmt.Errorf("setting up the AnalysisRun controller: Providers and Now are required")
	}
	if o.MeasureTimeout == 0 {
		o.MeasureTimeout = defaultMeasureTimeout
	}
	if o.Controller.MaxConcurrentReconciles == 0 {
		o.Controller.MaxConcurrentReconciles = defaultWorkers
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Providers: o.Providers,
		Events: mgr.GetEventRecorder("pushback-analysis"), Now: o.Now, MeasureTimeout: o.MeasureTimeout,
	}
	// Our own status writes are no news: the next time is in the result of each pass.
	// Annotations are, for one asks to try the providers of a finished run.
	news := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.AnalysisRun{}, builder.WithPredicates(news)).
		WithOptions(o.Controller).Named("analysisrun").Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the AnalysisRun controller: %w", err)
	}
	return nil
}

package analysisrun

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// lastWritten are the resourceVersions that this controller's writes gave to runs. A
// cache that holds just that version is not behind it, and need not be asked after: it
// saves one read per measurement. Whoever has written a run since is seen by the cache
// sooner or later, and until then a write over that is refused as a conflict.
type lastWritten struct{ versions sync.Map }

func (w *lastWritten) note(run *v1alpha1.AnalysisRun) {
	w.versions.Store(client.ObjectKeyFromObject(run), run.ResourceVersion)
}

func (w *lastWritten) forget(run types.NamespacedName) { w.versions.Delete(run) }

// is says that a run is as this controller wrote it last.
func (w *lastWritten) is(run *v1alpha1.AnalysisRun) bool {
	version, known := w.versions.Load(client.ObjectKeyFromObject(run))
	return known && version == run.ResourceVersion
}

package lint

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/forecast"
	"github.com/pushback-dev/pushback/gitsync"
)

// Severity of a finding.
type Severity string

// The severities. A note asks for nothing.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is one thing that is not as it was meant.
type Finding struct {
	// ID is the rule's, such as query-of-every-version; it is a heading of docs/lint.md.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// File and Line are where the document begins; 0 when it is built from several files.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Object as Kind/name, and Field in it.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	Mend   string `json:"mend"`
}

// rules by their ID.
var rules = map[string]Severity{
	"share-is-rounded":         Warning,
	"nothing-is-measured":      Warning,
	"metric-stops-nothing":     Warning,
	"analysis-never-ends":      Error,
	"query-of-every-version":   Warning,
	"numerator-may-be-empty":   Warning,
	"window-is-not-filled":     Warning,
	"service-selects-nothing":  Error,
	"replicas-beside-a-scaler": Warning,
	"can-not-be-forecast":      Error,
	"expr-has-a-form-in-cel":   Note,
}

// IDs are those of all rules, sorted.
func IDs() []string {
	var out []string
	for id := range rules {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Check looks at all objects of a tree, rendered and translated. ReadyDelay is how long
// a pod takes to become ready. Findings are sorted by file, line, object and ID.
func Check(objects []gitsync.Object, readyDelay time.Duration) []Finding {
	c := &checker{objects: objects, readyDelay: readyDelay}
	for _, o := range objects {
		switch {
		case isOurs(o, v1alpha1.RolloutKind):
			c.rollout(o)
		case isOurs(o, v1alpha1.AnalysisTemplateKind), isOurs(o, v1alpha1.ClusterAnalysisTemplateKind):
			c.template(o)
		case o.GetKind() == "HorizontalPodAutoscaler":
			c.scaler(o)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object), cmp.Compare(a.ID, b.ID))
	})
	return slices.Compact(c.found)
}

type checker struct {
	objects    []gitsync.Object
	readyDelay time.Duration
	found      []Finding
}

func (c *checker) add(id string, o gitsync.Object, field, reason, mend string) {
	c.found = append(c.found, Finding{
		ID: id, Severity: rules[id], File: o.File, Line: o.Line, Object: gitsync.Describe(o.Unstructured), Field: field, Reason: reason, Mend: mend,
	})
}

func isOurs(o gitsync.Object, kind string) bool {
	return o.GetKind() == kind && o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group
}

// lookup finds templates among the objects, and the object of each.
func (c *checker) lookup(namespace string) analysis.Lookup {
	return func(ref v1alpha1.AnalysisTemplateRef) (analysis.Template, error) {
		o, spec, err := c.templateNamed(namespace, ref)
		if err != nil || o == nil {
			return analysis.Template{}, cmp.Or(err, error(missing{ref}))
		}
		return analysis.Template{Name: ref.TemplateName, ClusterScope: ref.ClusterScope, Spec: spec}, nil
	}
}

func (c *checker) templateNamed(namespace string, ref v1alpha1.AnalysisTemplateRef) (*gitsync.Object, v1alpha1.AnalysisTemplateSpec, error) {
	kind := v1alpha1.AnalysisTemplateKind
	if ref.ClusterScope {
		kind = v1alpha1.ClusterAnalysisTemplateKind
	}
	for i, o := range c.objects {
		if !isOurs(o, kind) || o.GetName() != ref.TemplateName || !ref.ClusterScope && o.GetNamespace() != namespace {
			continue
		}
		spec, err := templateSpec(o)
		return &c.objects[i], spec, err
	}
	return nil, v1alpha1.AnalysisTemplateSpec{}, nil
}

func templateSpec(o gitsync.Object) (v1alpha1.AnalysisTemplateSpec, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return v1alpha1.AnalysisTemplateSpec{}, err
	}
	var template v1alpha1.AnalysisTemplate // the cluster's kind has the same spec
	err = json.Unmarshal(data, &template)
	return template.Spec, err
}

// missing says that a template is not among the objects.
type missing struct{ ref v1alpha1.AnalysisTemplateRef }

func (m missing) Error() string {
	return "template " + m.ref.TemplateName + " is not in these files"
}

func (c *checker) input(o gitsync.Object) (forecast.Input, error) {
	rollout := v1alpha1.Rollout{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &rollout); err != nil {
		return forecast.Input{}, err
	}
	return forecast.Input{
		Name: rollout.Name, Spec: rollout.Spec, Object: o.Object, Lookup: c.lookup(rollout.Namespace), ReadyDelay: c.readyDelay,
	}, nil
}

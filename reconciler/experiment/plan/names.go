package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// longestLabel is how long the name of a Service may be: a DNS label.
	longestLabel = 63
	// hashDigits is the length of a template hash.
	hashDigits = 10
)

// SetName is the name of a version's ReplicaSet, as Argo's.
func SetName(experiment, template string) string { return experiment + "-" + template }

// RunName is the name of an analysis's run, as Argo's.
func RunName(experiment, analysis string) string { return experiment + "-" + analysis }

// ServiceName is the name of a version's Service: the one that it is given, or else
// that of its ReplicaSet, as Argo's; shortened to a DNS label where it is too long.
func ServiceName(experiment string, t v1alpha1.TemplateSpec) string {
	if t.Service != nil && t.Service.Name != "" {
		return t.Service.Name
	}
	name := SetName(experiment, t.Name)
	if len(name) <= longestLabel {
		return name
	}
	return name[:longestLabel-hashDigits-1] + "-" + digest("service", name)
}

// Hash is the value of the template hash label on the pods of a version: of this
// version in this Experiment alone, so that neither another version with the same
// template nor a Rollout's Service or ReplicaSet selects them.
func Hash(experiment, template, templateHash string) string {
	return digest("template", experiment, template, templateHash)
}

// SpecHash identifies what can't be changed once it has begun: all but terminate,
// scaleDownDelaySeconds and the templates' replicas. hashes are the templates' own
// hashes by name, which stand for them.
func SpecHash(spec v1alpha1.ExperimentSpec, hashes map[string]string) (string, error) {
	fixed := *spec.DeepCopy()
	fixed.Terminate, fixed.ScaleDownDelaySeconds = false, nil
	for i := range fixed.Templates {
		fixed.Templates[i].Replicas, fixed.Templates[i].Template = nil, nil
	}
	text, err := json.Marshal(struct {
		Spec   v1alpha1.ExperimentSpec
		Hashes map[string]string
	}{fixed, hashes})
	if err != nil {
		return "", fmt.Errorf("hashing the spec: %w", err)
	}
	return digest("spec", string(text)), nil
}

// digest is 10 hex digits over a kind and some texts.
func digest(kind string, texts ...string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "pushback.dev/experiment/%s\n%q", kind, texts)
	return hex.EncodeToString(sum.Sum(nil))[:hashDigits]
}

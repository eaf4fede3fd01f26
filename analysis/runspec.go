package analysis

import (
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ArgumentSource is what the arguments of a Rollout's analysis are taken from.
type ArgumentSource struct {
	// StableHash and LatestHash are the values of podTemplateHashValue.
	StableHash, LatestHash string
	// Object is the Rollout as decoded JSON, for fieldRef.
	Object map[string]any
}

// MakeRunSpec is the spec of the AnalysisRun for an analysis of a Rollout: the
// templates merged, each argument with its value (Secrets stay references), all of
// it validated, so that nothing is left to be refused while measuring. An error is
// an *InvalidError, or wraps the lookup's.
func MakeRunSpec(a v1alpha1.RolloutAnalysis, src ArgumentSource, lookup Lookup) (v1alpha1.AnalysisRunSpec, error) {
	templates, err := Flatten(a.Templates, lookup)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	given, err := ResolveArgs(a.Args, src)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	spec, err := Merge(templates, given)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	if err := resolveDefaults(spec.Args, src); err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	spec.DryRun = append(spec.DryRun, a.DryRun...)
	spec.MeasurementRetention = append(spec.MeasurementRetention, a.MeasurementRetention...)
	if _, err := Prepare(spec); err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	return spec, nil
}

// ResolveArgs gives each argument of a Rollout its value, in list order. An error
// is an *InvalidError.
func ResolveArgs(args []v1alpha1.AnalysisRunArgument, src ArgumentSource) ([]v1alpha1.Argument, error) {
	var ps problems
	out := make([]v1alpha1.Argument, 0, len(args))
	for _, a := range args {
		value, err := resolveArg(a, src)
		if err != nil {
			ps.add("", "args.%s was not resolved: %v", a.Name, err)
			continue
		}
		out = append(out, v1alpha1.Argument{Name: a.Name, Value: &value})
	}
	return out, ps.err()
}

func resolveArg(a v1alpha1.AnalysisRunArgument, src ArgumentSource) (string, error) {
	from := a.ValueFrom
	switch {
	case from == nil:
		return a.Value, nil
	case a.Value != "":
		return "", fmt.Errorf("it has both value and valueFrom")
	case (from.PodTemplateHashValue == nil) == (from.FieldRef == nil):
		return "", fmt.Errorf("valueFrom wants exactly one of podTemplateHashValue and fieldRef")
	case from.FieldRef != nil:
		return fieldValue(src.Object, from.FieldRef.FieldPath)
	}
	switch *from.PodTemplateHashValue {
	case v1alpha1.HashStable:
		return wanted(src.StableHash, "there is no stable version")
	case v1alpha1.HashLatest:
		return wanted(src.LatestHash, "there is no latest version")
	}
	return "", fmt.Errorf("podTemplateHashValue %q is neither Stable nor Latest", *from.PodTemplateHashValue)
}

func wanted(value, otherwise string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("%s", otherwise)
	}
	return value, nil
}

// resolveDefaults replaces the fieldRefs that templates declare by their values.
func resolveDefaults(args []v1alpha1.Argument, src ArgumentSource) error {
	var ps problems
	for i := range args {
		from := args[i].ValueFrom
		if args[i].Value != nil || from == nil || from.FieldRef == nil {
			continue
		}
		value, err := fieldValue(src.Object, from.FieldRef.FieldPath)
		if err != nil {
			ps.add("", "args.%s was not resolved: %v", args[i].Name, err)
			continue
		}
		args[i].Value, args[i].ValueFrom = &value, nil
	}
	return ps.err()
}

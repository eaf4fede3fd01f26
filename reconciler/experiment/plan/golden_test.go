package plan

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

func versionOf(name string) v1alpha1.TemplateSpec { return v1alpha1.TemplateSpec{Name: name} }

func sides(more ...func(*v1alpha1.ExperimentSpec)) v1alpha1.ExperimentSpec {
	spec := v1alpha1.ExperimentSpec{Templates: []v1alpha1.TemplateSpec{versionOf("baseline"), versionOf("canary")}}
	for _, m := range more {
		m(&spec)
	}
	return spec
}

func lasting(text string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) { s.Duration = v1alpha1.DurationString(text) }
}

func analysed(names ...string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		for _, name := range names {
			s.Analyses = append(s.Analyses, v1alpha1.ExperimentAnalysisTemplateRef{Name: name, TemplateName: name})
		}
	}
}

func needs(name string) func(*v1alpha1.ExperimentSpec) {
	return func(s *v1alpha1.ExperimentSpec) {
		s.Analyses = append(s.Analyses, v1alpha1.ExperimentAnalysisTemplateRef{Name: name, TemplateName: name, RequiredForCompletion: true})
	}
}

func served(s *v1alpha1.ExperimentSpec) {
	for i := range s.Templates {
		s.Templates[i].Service = &v1alpha1.TemplateService{}
	}
}

// stories are whole Experiments, told as transcripts in testdata.
var stories = map[string]func(l *lab){
	"duration-without-analyses": func(l *lab) {
		l.spec = sides(lasting("10s"), served)
		l.slow["canary"] = 4 * time.Second
		l.play(60 * time.Second)
	},
	"no-duration-ends-with-all-analyses": func(l *lab) {
		l.spec = sides(analysed("errors", "latency"))
		l.verdicts["errors"], l.verdicts["latency"] = verdict{3 * time.Second, v1alpha1.AnalysisPhaseSuccessful}, verdict{8 * time.Second, v1alpha1.AnalysisPhaseSuccessful}
		l.play(60 * time.Second)
	},
	"required-analysis-outlasts-the-duration": func(l *lab) {
		l.spec = sides(lasting("5s"), needs("errors"), analysed("endless"))
		l.verdicts["errors"] = verdict{12 * time.Second, v1alpha1.AnalysisPhaseSuccessful}
		l.play(60 * time.Second)
	},
	"analysis-fails": func(l *lab) {
		l.spec = sides(lasting("1m"), analysed("errors", "endless"))
		l.verdicts["errors"] = verdict{5 * time.Second, v1alpha1.AnalysisPhaseFailed}
		l.play(60 * time.Second)
	},
	"analysis-is-inconclusive": func(l *lab) {
		l.spec = sides(analysed("errors"))
		l.verdicts["errors"] = verdict{5 * time.Second, v1alpha1.AnalysisPhaseInconclusive}
		l.play(60 * time.Second)
	},
	"provider-is-out": func(l *lab) {
		l.spec = sides(needs("errors"))
		l.verdicts["errors"] = verdict{5 * time.Second, v1alpha1.AnalysisPhaseError}
		l.play(60 * time.Second)
	},
	"version-never-becomes-available": func(l *lab) {
		l.spec = sides(lasting("10s"), analysed("errors"))
		l.spec.ProgressDeadlineSeconds = ptr.To[int32](20)
		l.slow["canary"] = -1
		l.play(80 * time.Second)
	},
	"terminated-while-it-measures": func(l *lab) {
		l.spec = sides(analysed("endless"))
		l.play(10 * time.Second)
		l.spec.Terminate = true
		l.play(60 * time.Second)
	},
	"terminated-before-it-is-available": func(l *lab) {
		l.spec = sides(lasting("10s"))
		l.slow["canary"] = -1
		l.play(10 * time.Second)
		l.spec.Terminate = true
		l.play(60 * time.Second)
	},
	"waits-for-what-is-missing": func(l *lab) {
		l.spec = sides(lasting("5s"), analysed("errors"))
		l.verdicts["errors"] = verdict{time.Second, v1alpha1.AnalysisPhaseSuccessful}
		l.missing = []string{"AnalysisTemplate errors does not exist: create it"}
		l.play(10 * time.Second)
		l.missing = nil
		l.play(60 * time.Second)
	},
	"corrected-before-it-began": func(l *lab) {
		l.spec = sides(lasting("5s"))
		l.invalid = []string{"spec.templates[0].template: no image"}
		l.play(10 * time.Second)
		l.invalid = nil
		l.play(60 * time.Second)
	},
	"edited-while-it-runs": func(l *lab) {
		l.spec = sides(lasting("30s"))
		l.play(10 * time.Second)
		l.spec.Duration = "1h"
		l.play(60 * time.Second)
	},
	"pods-fail-at-the-end": func(l *lab) {
		l.spec = sides(lasting("10s"))
		l.play(8 * time.Second)
		l.slow["canary"] = 20 * time.Second // counted from its start
		l.play(60 * time.Second)
	},
	"pods-stay-while-traffic-may-come": func(l *lab) {
		l.spec = sides(lasting("5s"), served)
		l.spec.ScaleDownDelaySeconds = ptr.To[int32](0)
		l.routed = true
		l.play(20 * time.Second)
		l.routed = false
		l.play(10 * time.Second)
	},
}

func TestGolden(t *testing.T) {
	for name, plays := range stories {
		t.Run(name, func(t *testing.T) {
			l := newLab(v1alpha1.ExperimentSpec{})
			plays(l)
			file := filepath.Join("testdata", name+".golden")
			got := l.transcript()
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			if len(l.broken) > 0 {
				t.Errorf("on the way: %v", l.broken)
			}
			// At rest nothing is written, however often it is decided.
			before := l.write
			l.play(5 * time.Second)
			if l.write != before {
				t.Errorf("%d writes at rest", l.write-before)
			}
		})
	}
}

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func setWeight(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }

func pause(seconds int32) v1alpha1.CanaryStep {
	length := intstr.FromInt32(seconds)
	return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: &length}}
}

var fleets = flag.String("fleet", "200,1000", "how many Rollouts BenchmarkFleet updates, separated by commas")

// BenchmarkFleet updates many Rollouts at once: the time until all are promoted,
// the controller's writes for each, its CPU time and memory; and the writes of half
// a minute in which nothing happens.
func BenchmarkFleet(b *testing.B) {
	for size := range strings.SplitSeq(*fleets, ",") {
		b.Run(size, func(b *testing.B) {
			size, err := strconv.Atoi(size)
			if err != nil {
				b.Fatalf("-fleet: %v", err)
			}
			f := newFleet(b, size, v1alpha1.CanaryStrategy{Steps: []v1alpha1.CanaryStep{setWeight(20), pause(1), setWeight(50), pause(1)}}, fleetOptions{countWrites: true})
			before, cpu, requests, passes := f.written(), f.cpu(), f.requests(), f.passes()
			for i := range b.N {
				version := fmt.Sprintf("v%d", i+2)
				b.ResetTimer()
				f.release(version)
				f.await("promoted to "+version, func(o *v1alpha1.Rollout) bool {
					return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && strings.Contains(string(o.Spec.Template.Raw), version) && o.Status.StableRS == o.Status.CurrentPodHash
				})
			}
			b.StopTimer()
			used, memory := f.cpu()-cpu, f.memory()
			b.ReportMetric((f.requests()-requests)/float64(size*b.N), "requests/rollout")
			b.ReportMetric((f.passes()-passes)/float64(size*b.N), "passes/rollout")
			f.quiet()
			after := f.written()
			for resource, count := range after {
				b.ReportMetric(float64(count-before[resource])/float64(size*b.N), resource+"-writes/rollout")
			}
			b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(float64(memory)/(1<<20), "MiB")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s")
			select {
			case <-time.After(30 * time.Second):
			case <-b.Context().Done():
			}
			b.ReportMetric(float64(f.written()["all"]-after["all"]), "idle-writes")
		})
	}
}

// BenchmarkAborts lets the metric of a hundred Rollouts at 20% fail in the same
// moment: the time from the provider's failing answer to weight 0 in the HTTPRoute.
func BenchmarkAborts(b *testing.B) {
	const size = 100
	g := newGauge()
	defer g.Close()
	f := newFleet(b, size, v1alpha1.CanaryStrategy{
		Steps: []v1alpha1.CanaryStep{setWeight(20), {Pause: &v1alpha1.RolloutPause{}}},
		Analysis: &v1alpha1.RolloutAnalysisBackground{
			StartingStep: new(int32),
			RolloutAnalysis: v1alpha1.RolloutAnalysis{
				Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "quality"}},
				Args: []v1alpha1.AnalysisRunArgument{{Name: "name", ValueFrom: &v1alpha1.ArgumentValueFrom{
					FieldRef: &v1alpha1.FieldRef{FieldPath: "metadata.name"}}}},
			},
		},
	}, fleetOptions{named: []client.Object{quality()}, flags: []string{"--prometheus-address=" + g.URL}})
	f.release("v2")
	f.await("at 20%", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhasePaused && o.Status.Canary.Weights != nil && o.Status.Canary.Weights.Canary.Weight == 20
	})
	back := f.watchWeights()
	asked := f.requests()
	b.ResetTimer()
	g.turnBad()
	times := f.takenBack(back, g)
	b.StopTimer()
	b.ReportMetric((f.requests()-asked)/size, "requests/abort")
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(times[len(times)*99/100-1].Seconds()*1000, "p99-ms")
	b.ReportMetric(times[len(times)-1].Seconds()*1000, "max-ms")
}

func quality() *v1alpha1.AnalysisTemplate {
	return &v1alpha1.AnalysisTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "quality"},
		Spec: v1alpha1.AnalysisTemplateSpec{Args: []v1alpha1.Argument{{Name: "name"}}, Metrics: []v1alpha1.Metric{{
			Name: "quality", Interval: "1s", SuccessCondition: "result[0] >= 0.95",
			Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: `quality{name="{{args.name}}"}`}},
		}}},
	}
}

// watchWeights tells when each route has come to weight 0 for the canary.
func (f *fleet) watchWeights() <-chan returned {
	f.Helper()
	var list gatewayv1.HTTPRouteList
	f.must(f.Client.List(f.ctx, &list, client.InNamespace(f.namespace)))
	events, err := f.Client.Watch(f.ctx, &gatewayv1.HTTPRouteList{}, client.InNamespace(f.namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	f.must(err)
	out := make(chan returned, f.size)
	go func() {
		defer close(out)
		defer events.Stop()
		for event := range events.ResultChan() {
			route, ok := event.Object.(*gatewayv1.HTTPRoute)
			if !ok || event.Type != watch.Modified {
				continue
			}
			if w := route.Spec.Rules[0].BackendRefs[1].Weight; w != nil && *w == 0 {
				out <- returned{route.Name, time.Now()}
			}
		}
	}()
	return out
}

type returned struct {
	name string
	at   time.Time
}

// takenBack waits for all routes, and returns how long each took.
func (f *fleet) takenBack(back <-chan returned, g *gauge) []time.Duration {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	done := map[string]time.Time{}
	for len(done) < f.size {
		select {
		case r, open := <-back:
			if !open {
				f.Fatalf("the watch ended with %d of %d routes at 0", len(done), f.size)
			}
			if _, before := done[r.name]; !before {
				done[r.name] = r.at
			}
		case <-ctx.Done():
			f.Fatalf("%d of %d routes are at 0", len(done), f.size)
		}
	}
	var out []time.Duration
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, at := range done {
		asked, known := g.bad[fmt.Sprintf(`quality{name=%q}`, name)]
		if !known {
			f.Fatalf("%s was taken back without a bad answer", name)
		}
		out = append(out, at.Sub(asked))
	}
	return out
}

// cpu is the processor time that the controller has used.
func (f *fleet) cpu() time.Duration {
	if runtime.GOOS != "linux" {
		return 0
	}
	const ticks = 100 // per second, on every Linux
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(f.ControllerPid(controller)), "stat"))
	f.must(err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	f.must(err)
	system, err := strconv.Atoi(fields[12])
	f.must(err)
	return time.Duration(user+system) * time.Second / ticks
}

// memory is what the controller has resident, in bytes.
func (f *fleet) memory() int {
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(f.ControllerPid(controller)), "statm"))
	f.must(err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	f.must(err)
	return pages * os.Getpagesize()
}

package prom

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name, ip string, annotations map[string]string, ports ...int32) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Annotations: annotations,
		Labels: map[string]string{"pushback.dev/template-hash": "0123456789", "app": "web"},
	}}
	p.Status.PodIP = ip
	p.Status.Phase = corev1.PodRunning
	container := corev1.Container{}
	for _, port := range ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{ContainerPort: port})
	}
	p.Spec.Containers = []corev1.Container{container}
	return p
}

func TestPodGroups(t *testing.T) {
	scrape := func(pairs ...string) map[string]string {
		m := map[string]string{"prometheus.io/scrape": "true"}
		for i := 0; i < len(pairs); i += 2 {
			m["prometheus.io/"+pairs[i]] = pairs[i+1]
		}
		return m
	}
	group := func(extra model.LabelSet, addresses ...string) *targetgroup.Group {
		g := &targetgroup.Group{Source: "shop/web", Labels: model.LabelSet{"namespace": "shop", "pod": "web", "template_hash": "0123456789"}.Merge(extra)}
		for _, a := range addresses {
			g.Targets = append(g.Targets, model.LabelSet{"__address__": model.LabelValue(a)})
		}
		return g
	}
	failed := pod("web", "10.64.0.7", scrape("port", "80"))
	failed.Status.Phase = corev1.PodFailed
	bare := pod("web", "10.64.0.7", scrape("port", "80"))
	bare.Labels = nil
	unhashed := group(nil, "10.64.0.7:80")
	delete(unhashed.Labels, "template_hash")
	tests := map[string]struct {
		pod     *corev1.Pod
		want    *targetgroup.Group
		problem string
	}{
		"port":           {pod: pod("web", "10.64.0.7", scrape("port", "8080")), want: group(nil, "10.64.0.7:8080")},
		"path, scheme":   {pod: pod("web", "10.64.0.7", scrape("port", "8080", "path", "/m", "scheme", "https")), want: group(model.LabelSet{"__metrics_path__": "/m", "__scheme__": "https"}, "10.64.0.7:8080")},
		"declared ports": {pod: pod("web", "10.64.0.7", scrape(), 9090, 8080, 9090), want: group(nil, "10.64.0.7:8080", "10.64.0.7:9090")},
		"IPv6":           {pod: pod("web", "fd00::7", scrape("port", "80")), want: group(nil, "[fd00::7]:80")},
		"no hash":        {pod: bare, want: unhashed},
		"no annotation":  {pod: pod("web", "10.64.0.7", nil, 8080)},
		"said no":        {pod: pod("web", "10.64.0.7", map[string]string{"prometheus.io/scrape": "false"}, 8080)},
		"no address yet": {pod: pod("web", "", scrape("port", "80"))},
		"over":           {pod: failed},
		"bad port":       {pod: pod("web", "10.64.0.7", scrape("port", "http")), problem: `shop/web: the annotation prometheus.io/port is "http"`},
		"port 0":         {pod: pod("web", "10.64.0.7", scrape("port", "0")), problem: `prometheus.io/port is "0"`},
		"no port":        {pod: pod("web", "10.64.0.7", scrape()), problem: "declares no TCP port"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, problems := podGroups([]*corev1.Pod{tc.pod})
			want := []*targetgroup.Group{}
			if tc.want != nil {
				want = append(want, tc.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			switch {
			case tc.problem == "" && len(problems) > 0:
				t.Errorf("problems: %v", problems)
			case tc.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.problem)):
				t.Errorf("problems %v, want %q", problems, tc.problem)
			}
		})
	}
}

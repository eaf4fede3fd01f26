package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestRefused(t *testing.T) {
	web := func(change func(*corev1.PodSpec)) corev1.PodSpec {
		p := corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "app", Image: "app:v1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 1},
				VolumeMounts:   []corev1.VolumeMount{{Name: "kube-api-access-x", MountPath: tokenMount, ReadOnly: true}},
			}},
			Volumes:       []corev1.Volume{{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
			RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "default", DNSPolicy: corev1.DNSClusterFirst,
		}
		change(&p)
		return p
	}
	first := func(change func(*corev1.Container)) corev1.PodSpec {
		return web(func(p *corev1.PodSpec) { change(&p.Containers[0]) })
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"as admission leaves it": {spec: web(func(*corev1.PodSpec) {})},
		"init container": {
			spec: web(func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{Name: "init"}} }),
			want: []string{"spec.initContainers"},
		},
		"host network": {spec: web(func(p *corev1.PodSpec) { p.HostNetwork = true }), want: []string{"spec.hostNetwork"}},
		"volume and mount": {
			spec: web(func(p *corev1.PodSpec) {
				p.Volumes = append(p.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
				p.Containers[0].VolumeMounts = append(p.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
			}),
			want: []string{"spec.volumes[1] (data)", "spec.containers[0].volumeMounts[1] (data)"},
		},
		"exec probe": {
			spec: first(func(c *corev1.Container) {
				c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
			}),
			want: []string{"spec.containers[0].livenessProbe.exec"},
		},
		"lifecycle": {
			spec: first(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{} }),
			want: []string{"spec.containers[0].lifecycle"},
		},
		"UDP and host port": {
			spec: first(func(c *corev1.Container) { c.Ports[0].Protocol, c.Ports[0].HostPort = corev1.ProtocolUDP, 80 }),
			want: []string{"spec.containers[0].ports[0].hostPort", "spec.containers[0].ports[0].protocol UDP"},
		},
		"resource field": {
			spec: first(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}
			}),
			want: []string{"spec.containers[0].env[0].valueFrom.resourceFieldRef"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&processLauncher{}).refused(&corev1.Pod{Spec: tc.spec})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

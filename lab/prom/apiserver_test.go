package prom

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/lab/dialtable"
)

var shared = clustertest.New(cluster.Options{})

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// An annotated pod is found, its series say whose they are, and they end with it.
func TestPodsOfARealAPIServerAreScraped(t *testing.T) {
	c := shared.Cluster(t)
	namespace := clustertest.Namespace(t, c)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	url, _ := exporter(t)
	var table dialtable.Table
	table.Set(map[string]string{"10.64.0.7:8080": strings.TrimPrefix(url, "http://")})
	_, queries := running(t, Options{Dial: table.DialContext, Pods: &PodSource{REST: c.RESTConfig(), Namespace: namespace}})

	pods := client.CoreV1().Pods(namespace)
	web := pod("web", "", map[string]string{"prometheus.io/scrape": "true"}, 8080)
	web.Namespace = namespace
	web.Spec.Containers[0].Name, web.Spec.Containers[0].Image = "app", "app:v1"
	web, err = pods.Create(t.Context(), web, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	web.Status.Phase, web.Status.PodIP = corev1.PodRunning, "10.64.0.7"
	web.Status.PodIPs = []corev1.PodIP{{IP: "10.64.0.7"}}
	if _, err := pods.UpdateStatus(t.Context(), web, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, queries, `http_requests_total{template_hash="0123456789",version="v1"}`,
		`http_requests_total{code="200", instance="10.64.0.7:8080", job="pods", namespace="`+namespace+`", pod="web", template_hash="0123456789", version="v1"} 75`)

	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, queries, "http_requests_total")
}

package fakemetrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/cluster"
)

const (
	serviceName = "fake-metrics"
	namespace   = metav1.NamespaceSystem
	timeout     = 60 * time.Second
)

// ControllerManagerArgs let the HPA controller look every second, and at pods as soon as they are Ready: by
// default it leaves out what a young pod uses until a whole window of it was measured.
// Whether a size may fall again at once is said in an HPA's spec.behavior.
func ControllerManagerArgs() []string {
	return []string{
		"--horizontal-pod-autoscaler-sync-period=1s",
		"--horizontal-pod-autoscaler-cpu-initialization-period=0s",
		"--horizontal-pod-autoscaler-initial-readiness-delay=0s",
	}
}

// Install serves the metrics on a port of 127.0.0.1 until the process ends, registers them with the cluster's
// API server and waits until it answers for them. It is a step for clustertest.New.
func (s *Server) Install(c *cluster.Cluster, ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	s.pods = client
	server := httptest.NewUnstartedServer(s)
	server.StartTLS()
	address, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("the metrics server listens on %s, which is no TCP address", server.Listener.Addr())
	}
	// The aggregator dials an ExternalName as it is; endpoints can't hold a loopback address.
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: address.IP.String()},
	}
	if _, err := client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the Service of the metrics API: %w", err)
	}
	if err := register(ctx, c, int64(address.Port)); err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		_, last = client.Discovery().RESTClient().Get().AbsPath("/apis", group, version, "namespaces", "default", "pods").DoRaw(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the metrics API: %w", errors.Join(err, last))
	}
	return nil
}

func register(ctx context.Context, c *cluster.Cluster, port int64) error {
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err = services.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true, // its certificate is of the moment
			"service":               map[string]any{"namespace": namespace, "name": serviceName, "port": port},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("registering the metrics API: %w", err)
	}
	return nil
}

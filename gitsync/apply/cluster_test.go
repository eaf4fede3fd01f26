package apply

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/gatewayapi"
)

var shared = clustertest.New(cluster.Options{AuditWrites: true}, (*cluster.Cluster).InstallGatewayAPI, clustertest.CRDs("manifests/crd"))

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// bench is a namespace of a real API server, with what a GitSync there applies.
type bench struct {
	testing.TB
	cluster   *cluster.Cluster
	client    client.Client
	namespace string
	applier   *Applier
	in        In
}

func newBench(t testing.TB) *bench {
	t.Helper()
	c := shared.Cluster(t)
	b := &bench{TB: t, cluster: c, namespace: clustertest.Namespace(t, c)}
	b.client = newClient(t, c.RESTConfig())
	b.applier = &Applier{Client: b.client, Own: b.client, Claims: func(target routers.Target) []routers.Claim {
		if target.Routing == nil {
			return routers.ServiceClaims(target)
		}
		return gatewayapi.New(nil, nil).Claims(target)
	}}
	b.in = In{
		GitSync: types.NamespacedName{Namespace: b.namespace, Name: "sync"}, Prune: true,
		Commit: Commit{Revision: revision("a"), Subject: "First"},
		Sources: func(o gitsync.Object) []File {
			return []File{{Path: o.File, Mode: "100644", Data: []byte("# " + o.File)}}
		},
	}
	return b
}

func revision(digit string) gitsync.Revision {
	return gitsync.Revision{Branch: "main", Hash: strings.Repeat(digit, 40)}
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// declare makes objects of YAML documents, each in a file of its own.
func declare(t testing.TB, docs ...string) []gitsync.Object {
	t.Helper()
	var out []gitsync.Object
	for i, doc := range docs {
		text, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		out = append(out, gitsync.Object{Unstructured: u, File: fmt.Sprintf("%d.yaml", i), Document: 1})
	}
	return out
}

// apply applies documents over what was applied before, and keeps the inventory.
func (b *bench) apply(docs ...string) Out {
	b.Helper()
	b.in.Objects = declare(b.TB, docs...)
	out, err := b.applier.Apply(b.Context(), b.in)
	if err != nil {
		b.Fatal(err)
	}
	b.in.Inventory = out.Inventory
	return out
}

// mustApply is apply without failures.
func (b *bench) mustApply(docs ...string) Out {
	b.Helper()
	out := b.apply(docs...)
	for _, failure := range out.Failures {
		b.Fatal(failure)
	}
	return out
}

// writes counts the writes to the namespace and to objects of the cluster since the last call.
func (b *bench) writesDuring(work func()) []string {
	b.Helper()
	list := func() []string {
		writes, err := b.cluster.Writes()
		if err != nil {
			b.Fatal(err)
		}
		var out []string
		for _, w := range writes {
			if w.Namespace == b.namespace && !w.DryRun() {
				out = append(out, w.Verb+" "+w.Resource+"/"+w.Name+"/"+w.Subresource)
			}
		}
		return out
	}
	before := len(list())
	work()
	return list()[before:]
}

func (b *bench) get(apiVersion, kind, name string) *unstructured.Unstructured {
	b.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if err := b.client.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, u); err != nil {
		b.Fatal(err)
	}
	return u
}

func (b *bench) exists(apiVersion, kind, name string) bool {
	b.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := b.client.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, u)
	if client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	return err == nil && u.GetDeletionTimestamp() == nil
}

func actions(out Out) map[string]Action {
	got := map[string]Action{}
	for _, change := range out.Changes {
		parts := strings.Split(change.Object, "/")
		got[parts[0]+"/"+parts[len(parts)-1]] = change.Action
	}
	return got
}

func failures(out Out) map[string]string {
	got := map[string]string{}
	for _, failure := range out.Failures {
		parts := strings.Split(failure.Object, "/")
		got[parts[0]+"/"+parts[len(parts)-1]] = failure.Err.Error()
	}
	return got
}

const (
	stableService = "{apiVersion: v1, kind: Service, metadata: {name: web-stable}, spec: {selector: {app: web}, ports: [{port: 80}]}}"
	canaryService = "{apiVersion: v1, kind: Service, metadata: {name: web-canary}, spec: {selector: {app: web}, ports: [{port: 80}]}}"
	route         = "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80, weight: 0}]}]}}"
	settings      = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, creationTimestamp: null}, data: {a: b}}"
	webRollout    = `
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata: {name: web, creationTimestamp: null}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - {name: app, image: "app:1", envFrom: [{configMapRef: {name: settings}}], resources: {}}
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      trafficRouting: {gatewayAPI: {httpRoute: web}}
      steps: [{setWeight: 20}]
status: {}
`
)

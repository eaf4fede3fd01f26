package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/world"
)

// limit of every wait: far more than it takes.
const limit = 2 * time.Minute

// tale is one story's namespace, repository and Rollout.
type tale struct {
	testing.TB
	ctx       context.Context
	namespace string
	repo      *world.Repo
}

// begin makes the namespace, the repository with v1 in it, the gateway and the GitSync.
func begin(t testing.TB, name string) *tale {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the control plane")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // on a machine that does much else
	t.Cleanup(cancel)
	s := &tale{TB: t, ctx: ctx, namespace: name}
	repo, err := world.InitRepo(ctx, t.TempDir())
	s.must(err)
	s.repo = repo
	s.must(shared.AddTenant(ctx, name))
	_, err = shared.StartGateway(name, "web")
	s.must(err)
	t.Cleanup(s.rest)
	return s
}

// rest suspends the tale's GitSyncs: each polls every second, and those of all that
// are over would take the requests that the others wait for.
func (s *tale) rest() {
	var syncs v1alpha1.GitSyncList
	if err := shared.Client.List(s.ctx, &syncs, client.InNamespace(s.namespace)); err != nil {
		s.Error(err)
		return
	}
	for i := range syncs.Items {
		s.suspend(&syncs.Items[i], true)
	}
}

// suspend sets the GitSync's field by a patch: the controller writes its status meanwhile.
func (s *tale) suspend(sync *v1alpha1.GitSync, suspended bool) {
	s.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspended))
	if err := shared.Client.Patch(s.ctx, sync, patch); client.IgnoreNotFound(err) != nil {
		s.Error(err)
	}
}

// follow makes the GitSync.
func (s *tale) follow() {
	s.Helper()
	s.must(shared.Client.Create(s.ctx, &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
		Spec: v1alpha1.GitSyncSpec{URL: s.repo.URL(), Ref: &v1alpha1.GitRef{Branch: "main"}, Path: "deploy",
			Interval: metav1.Duration{Duration: time.Second}, TargetNamespace: s.namespace, Prune: true},
	}))
}

func (s *tale) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// commit pushes files and returns the commit.
func (s *tale) commit(message string, files map[string]string) string {
	s.Helper()
	contents := map[string][]byte{}
	for path, text := range files {
		contents[path] = []byte(text)
	}
	hash, err := s.repo.Commit(s.ctx, message, contents)
	s.must(err)
	return hash
}

func (s *tale) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: "web"}
}

func (s *tale) rollout() *v1alpha1.Rollout {
	s.Helper()
	rollout := &v1alpha1.Rollout{}
	s.must(shared.Client.Get(s.ctx, s.key(), rollout))
	return rollout
}

// await waits until the Rollout is as wanted.
func (s *tale) await(what string, want func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	s.Helper()
	rollout := &v1alpha1.Rollout{}
	err := wait.PollUntilContextTimeout(s.ctx, 20*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		if err := shared.Client.Get(ctx, s.key(), rollout); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return want(rollout), nil
	})
	if err != nil {
		s.Fatalf("waiting for %s: %v\nphase %s, step %s, message %q\nstatus %+v\ncontroller log %s", what, err,
			rollout.Status.Phase, rollout.Status.Step, rollout.Status.Message, rollout.Status, shared.ControllerLog(controller))
	}
	return rollout
}

// awaitThat waits for anything else.
func (s *tale) awaitThat(what string, want func(context.Context) (bool, error)) {
	s.Helper()
	if err := wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, limit, true, want); err != nil {
		s.Fatalf("waiting for %s: %v; controller log %s", what, err, shared.ControllerLog(controller))
	}
}

// healthyAs waits until the version is stable and the Rollout Healthy.
func (s *tale) healthyAs(version string) *v1alpha1.Rollout {
	s.Helper()
	return s.await(version+" to be Healthy", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.ObservedGeneration == o.Generation &&
			strings.Contains(string(o.Spec.Template.Raw), "app:"+version)
	})
}

// weights are the live weights of the route.
func (s *tale) weights() (stable, canary int32) {
	s.Helper()
	stable, canary, err := weightsOf(s.ctx, s.namespace, "web")
	s.must(err)
	return stable, canary
}

// weightsOf reads the weights of <app>-stable and <app>-canary in the route <app>.
func weightsOf(ctx context.Context, namespace, app string) (stable, canary int32, err error) {
	route := &gatewayv1.HTTPRoute{}
	if err := shared.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: app}, route); err != nil {
		return 0, 0, err
	}
	for _, backend := range route.Spec.Rules[0].BackendRefs {
		weight := int32(1)
		if backend.Weight != nil {
			weight = *backend.Weight
		}
		switch string(backend.Name) {
		case app + "-stable":
			stable = weight
		case app + "-canary":
			canary = weight
		}
	}
	return stable, canary, nil
}

// replicaSet is that of a version.
func (s *tale) replicaSet(hash string) *appsv1.ReplicaSet {
	s.Helper()
	set := &appsv1.ReplicaSet{}
	s.must(shared.Client.Get(s.ctx, types.NamespacedName{Namespace: s.namespace, Name: "web-" + hash}, set))
	return set
}

// podUIDs are the pods of a hash.
func (s *tale) podUIDs(hash string) map[types.UID]string {
	s.Helper()
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	s.must(shared.Client.List(s.ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.TemplateHashLabel: hash}))
	found := map[types.UID]string{}
	for _, pod := range pods.Items {
		found[pod.GetUID()] = pod.GetName()
	}
	return found
}

// app is the Git content of a version. quality is what its measurement gives:
// the condition wants at least 0.95. The steps are those given.
func app(version, quality, steps string) map[string]string {
	return map[string]string{"deploy/web.yaml": fmt.Sprintf(webYAML, version, quality, steps)}
}

const quickSteps = `
      - setWeight: 25
      - analysis: {templates: [{templateName: quality}], args: [{name: quality, valueFrom: {fieldRef: {fieldPath: spec.template.metadata.annotations.quality}}}]}
      - setWeight: 50
      - pause: {duration: 1s}`

const waitingSteps = `
      - setWeight: 25
      - pause: {}
      - analysis: {templates: [{templateName: quality}], args: [{name: quality, valueFrom: {fieldRef: {fieldPath: spec.template.metadata.annotations.quality}}}]}`

const webYAML = `# the web service
apiVersion: v1
kind: Service
metadata:
  name: web-stable
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata:
  name: web-canary
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
spec:
  parentRefs: [{name: gateway}]
  rules:
  - backendRefs:
    - {name: web-stable, port: 80}
    - {name: web-canary, port: 80}
---
apiVersion: pushback.dev/v1alpha1
kind: AnalysisTemplate
metadata:
  name: quality
spec:
  args: [{name: quality}]
  metrics:
  - name: quality
    successCondition: result[0] >= 0.95
    interval: 1s
    count: 2
    provider:
      prometheus: {query: "vector({{args.quality}})"}
---
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata:
  name: web
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations:
        quality: "%[2]s" # what the measurement gives
    spec:
      containers:
      - name: app
        image: registry.example.com/app:%[1]s # the version
        ports: [{name: http, containerPort: 8080}]
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      scaleDownDelaySeconds: 1
      abortScaleDownDelaySeconds: 1
      trafficRouting: {gatewayAPI: {httpRoute: web}}
      steps:%[3]s
`

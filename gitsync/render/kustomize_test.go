package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pushback-dev/pushback/gitsync"
)

const rolloutYAML = `apiVersion: GROUP
kind: Rollout
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      initContainers:
      - {name: init, image: "r:5000/init"}
      containers:
      - name: app
        image: r:5000/a
        env:
        - {name: A, value: "1"}
        envFrom:
        - configMapRef: {name: settings}
        - secretRef: {name: login}
      - name: sidecar
        image: side:1
      volumes:
      - {name: v, configMap: {name: settings}}
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: web}}}
      steps:
      - analysis: {templates: [{templateName: rate}]}
`

func kustomized(group string) repo {
	return repo{
		"apps/web/kustomization.yaml": "namePrefix: p-\nresources: [../../base, rollout.yaml]\n" +
			"configMapGenerator: [{name: settings, files: [app.ini]}]\nsecretGenerator: [{name: login, literals: [a=b]}]\n" +
			"images:\n- {name: 'r:5000/a', newTag: '2'}\n- {name: 'r:5000/init', digest: 'sha256:abc'}\n" +
			"patches: [{path: patch.yaml}]\n",
		"apps/web/rollout.yaml":   strings.Replace(rolloutYAML, "GROUP", group, 1),
		"apps/web/patch.yaml":     "apiVersion: " + group + "\nkind: Rollout\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: app\n        env: [{name: B, value: '2'}]\n",
		"apps/web/app.ini":        "x = 1\n",
		"base/kustomization.yaml": "resources: [services.yaml]\n",
		"base/services.yaml":      "apiVersion: v1\nkind: Service\nmetadata: {name: web-stable}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web-canary}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n---\napiVersion: " + group + "\nkind: AnalysisTemplate\nmetadata: {name: rate}\nspec: {}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}\nspec: {rules: [{backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]}]}\n",
		"other/unread.yaml":       "kind: [\n",
	}
}

func find(t *testing.T, result Result, kind string) gitsync.Object {
	t.Helper()
	for _, o := range result.Objects {
		if o.GetKind() == kind {
			return o
		}
	}
	t.Fatalf("no %s in %v", kind, listing(result))
	return gitsync.Object{}
}

func TestC121_KustomizeReachesARollout(t *testing.T) {
	for _, group := range []string{"pushback.dev/v1alpha1", "argoproj.io/v1alpha1"} {
		t.Run(group, func(t *testing.T) {
			got, err := Folder(kustomized(group), "apps/web")
			if err != nil {
				t.Fatal(err)
			}
			settings, login := find(t, got, "ConfigMap").GetName(), find(t, got, "Secret").GetName()
			if !strings.HasPrefix(settings, "p-settings-") || !strings.HasPrefix(login, "p-login-") {
				t.Fatalf("generated names are %q and %q", settings, login)
			}
			rollout := find(t, got, "Rollout")
			spec, _, _ := unstructured.NestedMap(rollout.Object, "spec", "template", "spec")
			want := map[string]any{
				"serviceAccountName": "p-web",
				"initContainers":     []any{map[string]any{"name": "init", "image": "r:5000/init@sha256:abc"}},
				"containers": []any{
					map[string]any{
						"name": "app", "image": "r:5000/a:2",
						"env":     []any{map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "A", "value": "1"}},
						"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": settings}}, map[string]any{"secretRef": map[string]any{"name": login}}},
					},
					map[string]any{"name": "sidecar", "image": "side:1"},
				},
				"volumes": []any{map[string]any{"name": "v", "configMap": map[string]any{"name": settings}}},
			}
			if diff := cmp.Diff(want, spec); diff != "" {
				t.Error(diff)
			}
			canary, _, _ := unstructured.NestedMap(rollout.Object, "spec", "strategy", "canary")
			wantCanary := map[string]any{
				"stableService": "p-web-stable", "canaryService": "p-web-canary",
				"trafficRouting": map[string]any{"plugins": map[string]any{"argoproj-labs/gatewayAPI": map[string]any{"httpRoute": "p-web"}}},
				"steps":          []any{map[string]any{"analysis": map[string]any{"templates": []any{map[string]any{"templateName": "p-rate"}}}}},
			}
			if diff := cmp.Diff(wantCanary, canary); diff != "" {
				t.Error(diff)
			}
			wantFiles := []string{"apps/web/app.ini", "apps/web/kustomization.yaml", "apps/web/patch.yaml", "apps/web/rollout.yaml", "base/kustomization.yaml", "base/services.yaml"}
			if diff := cmp.Diff(wantFiles, rollout.Files); diff != "" {
				t.Error(diff)
			}
			if rollout.File != "apps/web/rollout.yaml" || find(t, got, "Service").File != "base/services.yaml" {
				t.Errorf("origins are %s and %s", rollout.File, find(t, got, "Service").File)
			}
			if len(rollout.GetAnnotations()) > 0 {
				t.Errorf("the build left annotations behind: %v", rollout.GetAnnotations())
			}
		})
	}
}

func TestKustomizeIsDeterministicAndKeepsGitsBytes(t *testing.T) {
	r := kustomized("pushback.dev/v1alpha1")
	first, err := Folder(r, "apps/web")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Folder(r, "apps/web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Objects, second.Objects); diff != "" {
		t.Error(diff)
	}
	for _, source := range first.Sources(find(t, first, "Rollout")) {
		if string(source.Data) != r[source.Path] {
			t.Errorf("%s is not as it is in Git: %q", source.Path, source.Data)
		}
	}
}

func TestKustomizationBelowAPlainFolderIsBuilt(t *testing.T) {
	r := repo{"a.yaml": configMap("a"), "k/kustomization.yaml": "namePrefix: p-\nresources: [b.yaml]\n", "k/b.yaml": configMap("b"), "k/not-named.yaml": "x: 1\n"}
	got, err := Folder(r, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.yaml 1 ConfigMap/a", "k/b.yaml 0 ConfigMap/p-b"}, listing(got)); diff != "" {
		t.Error(diff)
	}
}

// A repository may carry the same configuration for the tools that need it pasted.
func TestOwnConfigurationAndSchemaBesideOurs(t *testing.T) {
	r := kustomized("argoproj.io/v1alpha1")
	r["apps/web/kustomization.yaml"] += "configurations: [config.yaml]\nopenapi: {path: schema.json}\nbuildMetadata: [originAnnotations]\n"
	r["apps/web/config.yaml"], r["apps/web/schema.json"] = string(Configuration), string(Schema)
	for range 2 { // the second build runs after the schema was reset
		got, err := Folder(r, "apps/web")
		if err != nil {
			t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(find(t, got, "Rollout").Object, "spec", "template", "spec", "containers")
		if len(containers) != 2 {
			t.Errorf("want both containers, got %v", containers)
		}
		if find(t, got, "Rollout").GetAnnotations()["config.kubernetes.io/origin"] == "" {
			t.Error("the origin that the user asked for was taken away")
		}
	}
}

func TestASchemaOfOneRepositoryDoesNotReachAnother(t *testing.T) {
	mine := repo{
		"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n",
		"a.yaml":             "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {items: [{name: x, v: '1'}]}\n",
		"p.yaml":             "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {items: [{name: y, v: '2'}]}\n",
	}
	theirs := repo{
		"kustomization.yaml": mine["kustomization.yaml"] + "openapi: {path: s.json}\n", "a.yaml": mine["a.yaml"], "p.yaml": mine["p.yaml"],
		"s.json": `{"definitions":{"com.example.v1.Thing":{"type":"object","properties":{"spec":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object"},"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}}}},"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Thing","version":"v1"}]}}}`,
	}
	for name, tc := range map[string]struct {
		repo repo
		want int
	}{"1 theirs": {theirs, 2}, "2 mine": {mine, 1}, "3 theirs": {theirs, 2}} {
		got, err := Folder(tc.repo, "")
		if err != nil {
			t.Fatal(err)
		}
		items, _, _ := unstructured.NestedSlice(got.Objects[0].Object, "spec", "items")
		if len(items) != tc.want {
			t.Errorf("%s: want %d items, got %v", name, tc.want, items)
		}
	}
}

func TestKustomizeErrorsNameTheKustomization(t *testing.T) {
	r := repo{"k/kustomization.yaml": "resources: [a.yaml]\npatches: [{patch: '[{\"op\": \"replace\", \"path\": \"/data/x\", \"value\": \"y\"}]', target: {kind: ConfigMap}}]\n", "k/a.yaml": configMap("a")}
	_, err := Folder(r, "k")
	var errs gitsync.ManifestErrors
	if !errors.As(err, &errs) || errs[0].File != "k/kustomization.yaml" {
		t.Errorf("want an error that names k/kustomization.yaml, got %v", err)
	}
}

func TestReaching(t *testing.T) {
	r := repo{
		"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": configMap("web"),
		"prod/kustomization.yaml":   "resources: [../base]\npatches: [{path: p.yaml}]\n",
		"prod/p.yaml":               "{}",
		"stage/kustomization.yaml":  "components: [../part]\nresources: [../base, own.yaml]\n",
		"stage/own.yaml":            configMap("own"),
		"part/kustomization.yaml":   "kind: Component\nconfigMapGenerator: [{name: c, files: [x=../shared.ini]}]\n",
		"shared.ini":                "x",
		"plugin/kustomization.yaml": "transformers: [t.yaml]\n", "plugin/t.yaml": "{}",
		"broken/kustomization.yaml": "resources: [\n",
		"other/kustomization.yaml":  "resources: [a.yaml]\n", "other/a.yaml": configMap("a"),
	}
	for name, tc := range map[string]struct{ paths, want []string }{
		"a base's file reaches every overlay": {[]string{"base/web.yaml"}, []string{"plugin", "prod", "stage"}},
		"an overlay's own file":               {[]string{"stage/own.yaml"}, []string{"plugin", "stage"}},
		"a generator's file in a component":   {[]string{"shared.ini"}, []string{"plugin", "stage"}},
		"the kustomization itself":            {[]string{"prod/kustomization.yaml"}, []string{"plugin", "prod"}},
	} {
		got, err := Reaching(r, tc.paths)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

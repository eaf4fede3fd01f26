package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/forecast"
)

// planned runs plan, and returns what it prints and its error.
func planned(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, _, err := execute(t.Context(), append([]string{"plan"}, args...)...)
	return out, err
}

func TestPlanOfTheSample(t *testing.T) {
	const want = `Rollout shop: canary, traffic moves by weight, 4 pods

STEP  WHAT                   FROM  LASTS  ASKED  SHARE  NEW PODS  OLD PODS
1     setWeight 25           +0s   5s     25%    25%    1         4
2     analysis success-rate  +5s   8s     25%    25%    1         4
3     setWeight 50           +13s  5s     50%    50%    2         4
4     pause 5s               +18s  5s     50%    50%    2         4
5     analysis success-rate  +23s  8s     50%    50%    2         4
      promoted               +36s

MEASURED  METRIC        FIRST  EVERY  TIMES  IF ONLY THIS ONE NOTICES A BAD VERSION
step 2    success-rate  +9s    2s     3      traffic back at +9s; at most 25%, in all 1s of all traffic
step 5    success-rate  +27s   2s     3      traffic back at +27s; at most 50%, in all 7.8s of all traffic

If nothing notices: at most 100%, in all 12.3s of all traffic
`
	got, err := planned(t, "../../manifests/samples/shop")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

const checkout = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: checkout}
spec:
  replicas: 3
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec: {containers: [{name: app, image: "checkout:v1"}]}
  strategy:
    canary:
      steps: [{setWeight: 10}, {pause: {duration: 1h}}%s]
`

func onDisk(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollout.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Argo's documents are read as they are, and counted with other pods if asked.
func TestPlanOfAnArgoRollout(t *testing.T) {
	path := onDisk(t, strings.ReplaceAll(checkout, "%s", ""))
	for replicas, share := range map[string]float64{"3": 0.25, "20": 0.1} {
		text, err := planned(t, path, "--replicas", replicas, "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var got []forecast.Forecast
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].Steps[0].Share != share || got[0].Steps[1].Lasts != 3600 {
			t.Errorf("%s replicas: %+v", replicas, got)
		}
	}
}

func TestWhatPlanRefuses(t *testing.T) {
	analysed := strings.ReplaceAll(checkout, "%s", ", {analysis: {templates: [{templateName: errors}]}}")
	for name, tc := range map[string]struct {
		path string
		says []string
	}{
		"no such file":          {"nowhere.yaml", []string{"nowhere.yaml"}},
		"no Rollout":            {"../../manifests/rbac", []string{"there is no Rollout"}},
		"a template is missing": {onDisk(t, analysed), []string{"rollout.yaml", "step 3", `AnalysisTemplate "errors"`, "name the file"}},
		"an unknown field":      {onDisk(t, strings.ReplaceAll(checkout, "%s", ", {pauze: {}}")), []string{"rollout.yaml", "document 1", "pauze"}},
		"no YAML":               {onDisk(t, "a: [\n"), []string{"rollout.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := planned(t, tc.path)
			if err == nil {
				t.Fatalf("printed\n%s", out)
			}
			for _, want := range tc.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

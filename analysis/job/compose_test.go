package job

import (
	"strings"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/analysis"
)

func TestPatience(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-time.Minute: time.Second, 0: time.Second, 2 * time.Second: 2 * time.Second, 50 * time.Second: 10 * time.Second,
		200 * time.Second: 20 * time.Second, time.Hour: 30 * time.Second,
	} {
		if got := patience(age); got != want {
			t.Errorf("%s: got %s, want %s", age, got, want)
		}
	}
}

// The names are told apart, are labels of DNS, and leave room for what is added to them.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, metric := range []string{"smoke", "Smoke", "smoke test", "smoke-test", "-", "ünïcode", "", "1", strings.Repeat("long-", 20), strings.Repeat("long-", 21)} {
		for number := range 3 {
			id := analysis.MeasurementID(runUID, metric, number)
			name := Name(id, metric)
			if other, ok := seen[name]; ok {
				t.Errorf("%q and %q have the name %s", id, other, name)
			}
			seen[name] = id
			if len(name) > 47 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.HasPrefix(name, "-") {
				t.Errorf("%q has the name %q", id, name)
			}
			if name != Name(id, metric) {
				t.Error("a name changes")
			}
		}
	}
}

// An ended Job stays long enough to be found by a controller that was away.
func TestTimeToLive(t *testing.T) {
	for given, want := range map[string]any{
		``: nil, `"ttlSecondsAfterFinished":0,`: int64(600), `"ttlSecondsAfterFinished":30,`: int64(600),
		`"ttlSecondsAfterFinished":600,`: int64(600), `"ttlSecondsAfterFinished":3600,`: int64(3600),
	} {
		job, err := compose(query(strings.Replace(goodSpec, "{", "{"+given, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := job.Object["spec"].(map[string]any)["ttlSecondsAfterFinished"]; got != want {
			t.Errorf("%q: got %v, want %v", given, got, want)
		}
	}
}

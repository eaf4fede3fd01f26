package prometheus

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

type recorder struct{ header http.Header }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.header = req.Header
	return httptest.NewRecorder().Result(), nil
}

// Even a request that got past the refusal of redirects carries nothing elsewhere.
func TestCredentialsGoToTheOriginAlone(t *testing.T) {
	for target, want := range map[string]bool{
		"http://prom:9090/a":      true,
		"https://prom/a":          true, // a step up on the same host
		"http://prom:9091/a":      false,
		"http://sub.prom:9090/a":  false,
		"http://elsewhere:9090/a": false,
	} {
		t.Run(target, func(t *testing.T) {
			seen := &recorder{}
			c := credentials{next: seen, origin: &url.URL{Scheme: "http", Host: "prom:9090"}, metric: v1alpha1.PrometheusMetric{
				Headers:        []v1alpha1.WebMetricHeader{{Key: "X-Token", Value: "t"}},
				Authentication: &v1alpha1.Authentication{BasicAuth: &v1alpha1.BasicAuthConfig{Username: "u", Password: "p"}},
			}}
			resp, err := c.RoundTrip(httptest.NewRequest(http.MethodGet, target, nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			for _, name := range []string{"X-Token", "Authorization"} {
				if got := seen.header.Get(name) != ""; got != want {
					t.Errorf("%s is sent: %t, want %t", name, got, want)
				}
			}
		})
	}
	down := &url.URL{Scheme: "https", Host: "prom"}
	if isSameHost(down, &url.URL{Scheme: "http", Host: "prom"}) {
		t.Error("a step down to http counts as the same host")
	}
}

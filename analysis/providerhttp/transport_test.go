package providerhttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
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
			c := signed{next: seen, origin: &url.URL{Scheme: "http", Host: "prom:9090"}, sign: func(req *http.Request) error {
				SetHeader(req, "X-Token", "t")
				req.SetBasicAuth("u", "p")
				return nil
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

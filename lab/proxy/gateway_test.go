package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// version starts a backend that names a version and echoes what it was sent.
func version(t *testing.T, name string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-App-Version", name)
		w.Header().Set("Server", "app")
		fmt.Fprintf(w, "host=%s path=%s x=%s forwarded=%s", r.Host, r.URL, r.Header.Get("X-Test"), r.Header.Get("X-Forwarded-Host"))
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func refused(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	return server.Listener.Addr().String()
}

func gatewayWith(t *testing.T, rules ...table.Rule) (*Gateway, *httptest.Server) {
	t.Helper()
	g := NewGateway(nil, nil)
	if err := g.Serve(table.New(nil, rules)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(adminFirst(g.AdminHandler(""), g))
	t.Cleanup(func() { server.Close(); g.Close() })
	return g, server
}

type answer struct {
	code    int
	version string
	body    string
	header  http.Header
}

// get makes a request on a connection of its own.
func get(t *testing.T, url string, header ...string) answer {
	t.Helper()
	return do(t, "GET", url, "", header...)
}

func do(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header.Get("X-App-Version"), string(content), response.Header}
}

func to(name, address string, weight int64) table.Backend {
	return table.Backend{Name: name, Weight: weight, Endpoints: []string{address}}
}

func TestSplitIsExactOverHTTP(t *testing.T) {
	_, server := gatewayWith(t, table.Rule{Backends: []table.Backend{
		to("stable", version(t, "v1"), 75), to("canary", version(t, "v2"), 25), to("off", version(t, "v0"), 0),
	}})
	var mu sync.Mutex
	counts := map[string]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				v := get(t, server.URL).version
				mu.Lock()
				counts[v]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"v1": 75, "v2": 25}, counts); diff != "" {
		t.Errorf("100 requests (-want +got):\n%s", diff)
	}
}

// Endpoints come and go during a split; it stays exact. Weights that change
// begin a new sequence.
func TestEndpointChangesDoNotDisturbTheSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.Int64Range(0, 100).Draw(t, "weight")
		changeAt := rapid.SliceOfN(rapid.IntRange(0, 99), 0, 5).Draw(t, "changeAt")
		g := NewGateway(nil, nil)
		serve := func(endpoints ...string) {
			rule := table.Rule{Backends: []table.Backend{
				{Name: "stable", Weight: 100 - weight, Endpoints: endpoints}, {Name: "canary", Weight: weight, Invalid: "it is not there"},
			}}
			if err := g.Serve(table.New(nil, []table.Rule{rule})); err != nil {
				t.Fatal(err)
			}
		}
		serve()
		counts := map[int]int64{}
		for i := range 100 {
			for _, at := range changeAt {
				if at == i {
					serve() // the same weights, compiled again
				}
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			counts[w.Code]++
		}
		if counts[503] != 100-weight || counts[500] != weight {
			t.Fatalf("weight %d: %v", weight, counts)
		}
	})
}

func TestAnswersOfTheGatewayItself(t *testing.T) {
	good := version(t, "v1")
	tests := map[string]struct {
		rule table.Rule
		code int
		says string
	}{
		"no rule":        {table.Rule{Matches: []table.Match{{Path: table.Value{Value: "/other"}}}}, 404, "no rule matches GET /"},
		"refused":        {table.Rule{Refused: "retry is not supported", Backends: []table.Backend{to("a", good, 1)}}, 500, "retry is not supported"},
		"no backends":    {table.Rule{Name: "rules[0]"}, 500, "rules[0] has no backend"},
		"all weights 0":  {table.Rule{Name: "rules[0]", Backends: []table.Backend{to("a", good, 0)}}, 500, "weight above 0"},
		"invalid":        {table.Rule{Backends: []table.Backend{{Name: "a", Weight: 1, Invalid: "there is no Service a", Endpoints: []string{good}}}}, 500, "no Service a"},
		"nobody ready":   {table.Rule{Backends: []table.Backend{{Name: "a", Weight: 1}}}, 503, "a has no ready endpoint"},
		"backend is off": {table.Rule{Backends: []table.Backend{to("a", refused(t), 1)}}, 502, "a can't be reached"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, server := gatewayWith(t, tc.rule)
			got := get(t, server.URL+"/")
			if got.code != tc.code || !strings.Contains(got.body, tc.says) {
				t.Errorf("got %d %q, want %d %q", got.code, got.body, tc.code, tc.says)
			}
		})
	}
}

func TestNotReadyUntilServed(t *testing.T) {
	g := NewGateway(nil, nil)
	server := httptest.NewServer(adminFirst(g.AdminHandler(""), g))
	defer server.Close()
	for _, path := range []string{"/", "/-/ready"} {
		if got := get(t, server.URL+path); got.code != 503 {
			t.Errorf("%s: %d, want 503", path, got.code)
		}
	}
	if err := g.Serve(table.New(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if got := get(t, server.URL+"/-/ready"); got.code != 200 {
		t.Errorf("ready: %d", got.code)
	}
}

func TestHeadersAndPathsReachTheBackend(t *testing.T) {
	edits := func(h table.HeaderEdit, out ...string) table.Edits {
		return table.Edits{Request: h, Response: table.HeaderEdit{Remove: out}}
	}
	backend := to("a", version(t, "v1"), 1)
	backend.Edits = edits(table.HeaderEdit{Add: []table.Header{{Name: "x-test", Value: "more"}}})
	_, server := gatewayWith(t,
		table.Rule{Name: "plain", Backends: []table.Backend{to("a", backend.Endpoints[0], 1)}},
		table.Rule{Name: "edit", Matches: []table.Match{{Path: table.Value{Value: "/edit"}}}, Backends: []table.Backend{backend},
			Edits: edits(table.HeaderEdit{Set: []table.Header{{Name: "x-test", Value: "set"}, {Name: "host", Value: "inner"}}}, "Server")},
		table.Rule{Name: "strip", Matches: []table.Match{{Path: table.Value{Value: "/strip"}}}, Backends: []table.Backend{to("a", backend.Endpoints[0], 1)},
			Edits: edits(table.HeaderEdit{Remove: []string{"X-TEST"}})},
	)
	host := strings.TrimPrefix(server.URL, "http://")
	plain := get(t, server.URL+"/a%2Fb?q=1&r=%20", "X-Test", "mine")
	if want := "host=" + host + " path=/a%2Fb?q=1&r=%20 x=mine forwarded=" + host; plain.body != want || plain.header.Get("Server") != "app" {
		t.Errorf("got %q, want %q", plain.body, want)
	}
	edited := get(t, server.URL+"/edit", "X-Test", "mine")
	if want := "host=inner path=/edit x=set forwarded=" + host; edited.body != want || edited.header.Get("Server") != "" {
		t.Errorf("got %q with %v, want %q", edited.body, edited.header, want)
	}
	if got := get(t, server.URL+"/strip", "X-Test", "mine"); !strings.Contains(got.body, " x= ") {
		t.Errorf("got %q", got.body)
	}
}

func TestRoundRobinOverEndpoints(t *testing.T) {
	_, server := gatewayWith(t, table.Rule{Backends: []table.Backend{
		{Name: "a", Weight: 1, Endpoints: []string{version(t, "pod1"), version(t, "pod2"), version(t, "pod3")}},
	}})
	var got []string
	for range 6 {
		got = append(got, get(t, server.URL).version)
	}
	if diff := cmp.Diff([]string{"pod1", "pod2", "pod3", "pod1", "pod2", "pod3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTimeoutIs504(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	defer close(release)
	_, server := gatewayWith(t, table.Rule{Timeout: 20 * time.Millisecond, Backends: []table.Backend{to("a", slow.Listener.Addr().String(), 1)}})
	if got := get(t, server.URL); got.code != 504 {
		t.Errorf("got %d %q, want 504", got.code, got.body)
	}
}

func TestMetricsNameVersionAndBackend(t *testing.T) {
	_, server := gatewayWith(t, table.Rule{Backends: []table.Backend{
		to("stable", version(t, "v1"), 3), {Name: "canary", Weight: 1, Invalid: "it is not there"},
	}})
	for range 4 {
		get(t, server.URL)
	}
	metrics := get(t, server.URL+"/metrics").body
	for _, want := range []string{
		`http_requests_total{code="200",version="v1"} 3`,
		`http_requests_total{code="500",version="none"} 1`,
		`http_request_duration_seconds_count{code="200",version="v1"} 3`,
		`gateway_requests_total{backend="stable",code="200"} 3`,
		`gateway_requests_total{backend="canary",code="500"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no line %q in:\n%s", want, metrics)
		}
	}
}

package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// listener is a backend that keeps what it was sent.
type listener struct {
	mu     sync.Mutex
	bodies []string
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bodies = append(l.bodies, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Env")+" "+string(body))
	w.WriteHeader(http.StatusTeapot)
}

// got are the requests so far.
func (l *listener) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.bodies)
}

func listen(t *testing.T) (*listener, string) {
	t.Helper()
	l := &listener{}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return l, server.Listener.Addr().String()
}

func mirrorTo(address string, part, of int64) table.Mirror {
	return table.Mirror{Part: part, Of: of, Backend: table.Backend{Name: "shadow", Endpoints: []string{address}}}
}

func TestMirrorGetsItsExactShare(t *testing.T) {
	for _, tc := range []struct{ part, of, want int64 }{{0, 100, 0}, {25, 100, 25}, {1, 3, 33}, {100, 100, 100}} {
		shadow, address := listen(t)
		g, server := gatewayWith(t, table.Rule{Backends: []table.Backend{to("stable", version(t, "v1"), 1)}, Mirrors: []table.Mirror{mirrorTo(address, tc.part, tc.of)}})
		for range 100 {
			if got := get(t, server.URL); got.code != 200 || got.version != "v1" {
				t.Fatalf("answered by %q with %d", got.version, got.code)
			}
		}
		g.mirrors.Wait()
		if got := int64(len(shadow.got())); got != tc.want {
			t.Errorf("%d of %d: %d of 100 requests were copied, want %d", tc.part, tc.of, got, tc.want)
		}
	}
}

func TestMirrorGetsTheWholeRequest(t *testing.T) {
	shadow, address := listen(t)
	answering, backend := listen(t)
	edit := table.Edits{Request: table.HeaderEdit{Set: []table.Header{{Name: "x-env", Value: "prod"}}}}
	g, server := gatewayWith(t, table.Rule{Edits: edit, Backends: []table.Backend{to("stable", backend, 1)}, Mirrors: []table.Mirror{mirrorTo(address, 100, 100)}})
	do(t, "POST", server.URL+"/a%2Fb?q=1", "hello")
	g.mirrors.Wait()
	want := []string{"POST /a%2Fb?q=1 prod hello"}
	if diff := cmp.Diff(want, shadow.got()); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, answering.got()); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// A mirror that is slow, off or without endpoints, and a body that is too large to
// keep, cost the request nothing; each is counted.
func TestMirrorNeverDisturbsTheRequest(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	answering, backend := listen(t)
	nobody := mirrorTo("", 100, 100)
	nobody.Backend.Endpoints = nil
	shadow, address := listen(t)
	g, server := gatewayWith(t,
		table.Rule{Name: "main", Backends: []table.Backend{to("stable", backend, 1)},
			Mirrors: []table.Mirror{mirrorTo(slow.Listener.Addr().String(), 100, 100), mirrorTo(refused(t), 100, 100), nobody}},
		table.Rule{Name: "large", Matches: []table.Match{{Path: table.Value{Value: "/large"}}}, Backends: []table.Backend{to("stable", backend, 1)}, Mirrors: []table.Mirror{mirrorTo(address, 100, 100)}},
	)
	if got := do(t, "POST", server.URL, "x"); got.code != http.StatusTeapot {
		t.Errorf("answered with %d", got.code)
	}
	large := strings.Repeat("x", maxMirrorBody+5)
	if got := do(t, "POST", server.URL+"/large", large); got.code != http.StatusTeapot {
		t.Errorf("answered with %d", got.code)
	}
	if got := answering.got()[1]; !strings.HasSuffix(got, " "+large) {
		t.Errorf("%d bytes of %d arrived", len(got), len(large))
	}
	close(release)
	g.mirrors.Wait()
	if len(shadow.got()) != 0 {
		t.Error("a request that is too large was copied")
	}
	metrics := get(t, server.URL+"/metrics").body
	for _, code := range []string{"200", "502", codeNobody, codeTooLarge} {
		if want := `gateway_mirrored_requests_total{backend="shadow",code="` + code + `"} 1`; !strings.Contains(metrics, want+"\n") {
			t.Errorf("no line %q in:\n%s", want, metrics)
		}
	}
}

// Rules that come and go, as managed routes do, don't disturb the split of others.
func TestOtherRulesDoNotDisturbTheSplit(t *testing.T) {
	g := NewGateway(nil, nil)
	split := table.Rule{Backends: []table.Backend{{Name: "stable", Weight: 75}, {Name: "canary", Weight: 25, Invalid: "it is not there"}}}
	extra := table.Rule{Matches: []table.Match{{Headers: []table.Named{{Name: "x", Value: table.Value{Kind: table.Exact, Value: "1"}}}}}}
	counts := map[int]int{}
	for i := range 100 {
		rules := []table.Rule{split}
		if i%3 == 0 {
			rules = []table.Rule{extra, split}
		}
		if err := g.Serve(table.New(nil, rules)); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		counts[w.Code]++
	}
	if counts[503] != 75 || counts[500] != 25 {
		t.Errorf("%v", counts)
	}
}

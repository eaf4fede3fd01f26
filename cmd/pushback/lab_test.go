package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/lab/app"
	"github.com/pushback-dev/pushback/lab/exact"
	"github.com/pushback-dev/pushback/lab/proxy"
)

// execute runs a command line to its end.
func execute(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, problems bytes.Buffer
	cmd := newRootCommand("pushback")
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&problems)
	err = cmd.ExecuteContext(ctx)
	return out.String(), problems.String(), err
}

// lines is an output that tests wait for.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// address waits for the line "… on ADDRESS".
func (l *lines) address(t *testing.T) string {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		l.mu.Lock()
		found := regexp.MustCompile(`on (\S+)\n`).FindStringSubmatch(l.text.String())
		l.mu.Unlock()
		if found != nil {
			return "http://" + found[1]
		}
		if time.Now().After(deadline) {
			t.Fatal("the server did not say where it listens")
		}
		time.Sleep(time.Millisecond)
	}
}

// start runs a server's command line until the test ends and returns its URL.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var out lines
	cmd := newRootCommand("pushback")
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("%v: %v", args, err)
		}
	})
	return out.address(t)
}

// The whole lesson over command lines alone: two versions, a split, load, and
// the same numbers from the load generator and from PromQL.
func TestLabLesson(t *testing.T) {
	v1 := start(t, "app", "--version", "v1", "--listen", "127.0.0.1:0")
	v2 := start(t, "app", "--version", "v2", "--error-rate", "50%", "--listen", "127.0.0.1:0")
	gateway := start(t, "proxy", "--listen", "127.0.0.1:0")
	config := `{"backends":[{"name":"stable","url":"` + v1 + `","weight":75},{"name":"canary","url":"` + v2 + `","weight":25}]}`
	response, err := http.Post(gateway+"/admin/config", "application/json", strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("POST /admin/config: %s", response.Status)
	}

	out, _, err := execute(t.Context(), "load", gateway, "--rps", "400", "--requests", "80")
	if want := "total  80 requests  v1 75.0% (60, 0 errors)  v2 25.0% (20, 10 errors)\n"; err != nil || !strings.HasSuffix(out, want) {
		t.Fatalf("load: %v\n%s\nwant %q", err, out, want)
	}

	prometheus := start(t, "prometheus", "--listen", "127.0.0.1:0", "--interval", "100ms", "--scrape", gateway)
	deadline := time.Now().Add(20 * time.Second)
	for {
		out, _, err := execute(t.Context(), "query", prometheus, `sum by (version, code) (http_requests_total)`)
		got := strings.Join(strings.Fields(out), " ")
		if want := `SERIES VALUE {code="200", version="v1"} 60 {code="200", version="v2"} 10 {code="500", version="v2"} 10`; err == nil && got == want {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("query: %v\n%s", err, out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, _, err = execute(t.Context(), "query", prometheus, "sum(")
	if err == nil || !strings.Contains(err.Error(), "unclosed left parenthesis") {
		t.Errorf("a bad expression: %v", err)
	}
	out, _, err = execute(t.Context(), "query", prometheus, "vector(2)", "--time", "7", "-o", "json")
	if err != nil || strings.TrimSpace(out) != `{"result":[{"metric":{},"value":[7,"2"]}],"resultType":"vector"}` {
		t.Errorf("json: %v %s", err, out)
	}
	out, _, err = execute(t.Context(), "query", prometheus, "none")
	if err != nil || out != "no series\n" {
		t.Errorf("no series: %v %q", err, out)
	}
}

func TestAppTakesItsFlagsFromTheEnvironment(t *testing.T) {
	t.Setenv("APP_VERSION", "v9")
	t.Setenv("ERROR_RATE", "1")
	t.Setenv("PUSHBACK_LISTEN", "127.0.0.1:0")
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"environment":    {nil, 500, "error from v9\n"},
		"flags go first": {[]string{"--version", "v10", "--error-rate", "0"}, 200, "hello from v10\n"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := http.Get(start(t, append([]string{"app"}, tc.args...)...))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != tc.code || string(body) != tc.says {
				t.Errorf("got %d %q, want %d %q", response.StatusCode, body, tc.code, tc.says)
			}
		})
	}
}

func TestWrongUsageIsRefused(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		args []string
		is   error
		says string
	}{
		"no version":      {args: []string{"app"}, is: app.ErrNoVersion, says: "APP_VERSION"},
		"bad rate":        {args: []string{"app", "--version", "v1", "--error-rate", "2"}, says: exact.ErrRate.Error()},
		"bad environment": {env: map[string]string{"LATENCY": "fast"}, args: []string{"app", "--version", "v1"}, says: "environment variable LATENCY"},
		"lost namespace":  {args: []string{"proxy", "-n", "shop"}, says: "--httproute, which is not given"},
		"no such file":    {args: []string{"proxy", "--config", "/nonexistent"}, says: "--config"},
		"two sources":     {args: []string{"proxy", "--config", "a", "--httproute", "b"}, says: "config httproute"},
		"nothing to do":   {args: []string{"prometheus"}, says: "nothing to scrape"},
		"bad header":      {args: []string{"load", "http://a", "-H", "x"}, says: `"Name: value"`},
		"bad format":      {args: []string{"load", "http://a", "-o", "yaml"}, says: "not an output format here; use json"},
		"bad time":        {args: []string{"query", "http://a", "up", "--time", "noon"}, says: "RFC 3339"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			_, _, err := execute(t.Context(), tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.says) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestQueryOfAServerThatFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the disk is full", http.StatusInternalServerError)
	}))
	defer server.Close()
	_, _, err := execute(t.Context(), "query", server.URL, "up")
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v", err)
	}
}

// Every verb has an example, and as a kubectl plugin it reads as one.
func TestHelpSaysWhatTheUserTyped(t *testing.T) {
	for invokedAs, want := range map[string]string{"/usr/bin/pushback": "pushback", "kubectl-pushback": "kubectl pushback", `kubectl-pushback.exe`: "kubectl pushback"} {
		root := newRootCommand(invokedAs)
		for _, c := range root.Commands() {
			if c.Name() == "help" || c.Name() == "completion" {
				continue
			}
			if !strings.HasPrefix(c.Example, "  "+want+" "+c.Name()) {
				t.Errorf("%s: the example of %s is\n%s", invokedAs, c.Name(), c.Example)
			}
			if got := c.CommandPath(); got != want+" "+c.Name() {
				t.Errorf("%s: path %q", invokedAs, got)
			}
			if c.GroupID == "" || c.Short == "" {
				t.Errorf("%s has no group or no summary", c.Name())
			}
		}
	}
}

// The configuration that the help shows is one that works.
func TestHelpOfProxyShowsAConfiguration(t *testing.T) {
	text := newProxyCommand().Example
	text = text[strings.Index(text, "{"):strings.LastIndex(text, "}'")] + "}"
	if _, err := proxy.ParseConfig([]byte(text)); err != nil || !json.Valid([]byte(text)) {
		t.Errorf("%v:\n%s", err, text)
	}
}

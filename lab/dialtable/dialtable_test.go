package dialtable

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestDialsThroughTheTable(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "pod")
	}))
	defer app.Close()
	var table Table
	table.Set(map[string]string{"10.64.0.7:8080": app.Listener.Addr().String()})
	client := &http.Client{Transport: &http.Transport{DialContext: table.DialContext, DisableKeepAlives: true}}

	for _, url := range []string{"http://10.64.0.7:8080/", app.URL} {
		response, err := client.Get(url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if string(body) != "pod" {
			t.Errorf("%s: %q", url, body)
		}
	}
	if got := table.Lookup("10.64.0.8:8080"); got != "10.64.0.8:8080" {
		t.Errorf("an unknown address became %s", got)
	}
}

func TestFollowKeepsTheLastTableThroughFailures(t *testing.T) {
	var body atomic.Value
	body.Store(`{"10.64.0.7:80":"127.0.0.1:1001"}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	table := Table{URL: server.URL}
	events := make(chan error, 10)
	go table.Follow(ctx, 5*time.Millisecond, func(err error) { events <- err })

	waitFor(t, func() bool { return table.Lookup("10.64.0.7:80") == "127.0.0.1:1001" })
	body.Store(`["not an object"]`)
	if err := <-events; err == nil {
		t.Error("a broken table was not reported")
	}
	if got := table.Lookup("10.64.0.7:80"); got != "127.0.0.1:1001" {
		t.Errorf("the last table was lost: %s", got)
	}
	body.Store(`{}`)
	if err := <-events; err != nil {
		t.Errorf("recovery reported as %v", err)
	}
	waitFor(t, func() bool { return table.Lookup("10.64.0.7:80") == "10.64.0.7:80" })
}

// A pod that is ready before the next fetch, and one whose address was handed on,
// are both reached at the first dial.
func TestDialAsksAgainForWhatItLacks(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"10.64.0.7:80":"`+listener.Addr().String()+`"}`)
	}))
	defer server.Close()
	for name, known := range map[string]map[string]string{
		"missing": nil,
		"stale":   {"10.64.0.7:80": closedAddress(t)},
	} {
		t.Run(name, func(t *testing.T) {
			table := Table{URL: server.URL}
			table.Set(known)
			conn, err := table.DialContext(t.Context(), "tcp", "10.64.0.7:80")
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

// closedAddress is a loopback address that refuses connections.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not come true in 5s")
		}
		time.Sleep(time.Millisecond)
	}
}

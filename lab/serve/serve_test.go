package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestRunCutsOffWhatOutlastsTheGrace(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	arrived, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	listening := make(chan net.Addr, 1)
	done := make(chan error, 1)
	go func() {
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-release })
		done <- Run(ctx, handler, Options{Listen: "127.0.0.1:0", Grace: 20 * time.Millisecond, OnListen: func(a net.Addr) { listening <- a }})
	}()
	failed := make(chan error, 1)
	url := "http://" + (<-listening).String()
	go func() {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
		}
		failed <- err
	}()
	<-arrived
	stop()
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v, want the deadline", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request that outlasted the grace was answered")
	}
}

func TestRunRefusesAnAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = Run(t.Context(), http.NotFoundHandler(), Options{Listen: listener.Addr().String()})
	if opError := (*net.OpError)(nil); !errors.As(err, &opError) {
		t.Errorf("got %v, want a net.OpError", err)
	}
}

// A listener that is given is used, and closed at the end.
func TestRunUsesTheListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, http.NotFoundHandler(), Options{Listener: listener}) }()
	response, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

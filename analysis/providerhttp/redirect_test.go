package providerhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/internal/egress"
)

// A redirect is followed as long as what is asked stays what it is.
func TestRedirectsThatChangeTheMethod(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &code); err == nil {
			http.Redirect(w, r, "/there", code)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}))
	defer s.Close()
	for _, tc := range []struct {
		method string
		code   int
		want   error
	}{
		{http.MethodPost, 301, ErrRedirectMethod},
		{http.MethodPost, 302, ErrRedirectMethod},
		{http.MethodPost, 303, ErrRedirectMethod},
		{http.MethodPost, 307, nil},
		{http.MethodPost, 308, nil},
		{http.MethodPut, 302, ErrRedirectMethod},
		{http.MethodPut, 303, ErrRedirectMethod},
		{http.MethodPut, 307, nil},
		{http.MethodGet, 301, nil},
		{http.MethodGet, 303, nil},
	} {
		t.Run(fmt.Sprint(tc.method, " ", tc.code), func(t *testing.T) {
			origin, err := ParseAddress(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			body := "question"
			if tc.method == http.MethodGet {
				body = ""
			}
			req, err := http.NewRequest(tc.method, fmt.Sprintf("%s/%d", s.URL, tc.code), strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Fetch(New(egress.Policy{}).Client(origin, false, nil), req)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if want := tc.method + " " + body; err == nil && string(got) != want {
				t.Errorf("the server was asked %q, want %q", got, want)
			}
		})
	}
}

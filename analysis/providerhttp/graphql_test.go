package providerhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGraphQL(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want string
		err  string
		is   error
	}{
		"data":                   {`{"data":{"a":1}}`, "map[a:1]", "", nil},
		"null":                   {`{"data":null}`, "<nil>", "", nil},
		"no errors":              {`{"data":{"a":1},"errors":[]}`, "map[a:1]", "", nil},
		"errors":                 {`{"errors":[{"message":"one"},{"message":"two"}]}`, "", "one; two", nil},
		"errors beside the data": {`{"data":{"a":1},"errors":[{"message":"one"}]}`, "", "one", nil},
		"an error of no words":   {`{"data":{"a":1},"errors":[{}]}`, "", "failed", nil},
		"nothing of GraphQL's":   {`{"ok":true}`, "", "no data", ErrNoGraphQL},
		"no JSON":                {`<html>`, "", "", ErrNoGraphQL},
		"errors of another kind": {`{"errors":"bad"}`, "", "", ErrNoGraphQL},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) }))
			defer s.Close()
			target, err := ParseAddress(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			var out any
			err = GraphQL(context.Background(), s.Client(), target, "{a}", nil, &out)
			if (err != nil) != (tc.want == "") || tc.is != nil && !errors.Is(err, tc.is) {
				t.Fatalf("got %v, want %v", err, tc.is)
			}
			if err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("the error %q lacks %q", err, tc.err)
			}
			if got := fmt.Sprint(out); err == nil && got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

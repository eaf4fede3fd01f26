package providersecret

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
)

var errForbidden = errors.New("forbidden")

// cluster holds Secrets by "namespace/name"; nil ones can't be read.
type cluster map[string]map[string][]byte

func (c cluster) read(_ context.Context, namespace, name string) (map[string][]byte, error) {
	data, ok := c[namespace+"/"+name]
	switch {
	case !ok:
		return nil, ErrNotFound
	case data == nil:
		return nil, errForbidden
	}
	return data, nil
}

func secret(token string) map[string][]byte {
	return map[string][]byte{"token": []byte(token), "region": []byte(" eu\n")}
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		secrets cluster
		shared  string
		own     bool
		want    string
		err     error
	}{
		"shared":                             {cluster{"system/dd": secret("s")}, "system", false, "s", nil},
		"the run's":                          {cluster{"shop/dd": secret("r")}, "system", false, "r", nil},
		"shared wins":                        {cluster{"system/dd": secret("s"), "shop/dd": secret("r")}, "system", false, "s", nil},
		"own":                                {cluster{"system/dd": secret("s"), "shop/dd": secret("r")}, "system", true, "r", nil},
		"own is not there":                   {cluster{"system/dd": secret("s")}, "system", true, "", ErrUnusable},
		"nothing is shared":                  {cluster{"system/dd": secret("s")}, "", false, "", ErrUnusable},
		"one that lacks a key is passed":     {cluster{"system/dd": {"api": []byte("s")}, "shop/dd": secret("r")}, "system", false, "r", nil},
		"one with a blank key is passed":     {cluster{"system/dd": secret(" \n"), "shop/dd": secret("r")}, "system", false, "r", nil},
		"no key anywhere":                    {cluster{"shop/dd": {"api": []byte("s")}}, "system", false, "", ErrUnusable},
		"other namespaces are not looked in": {cluster{"other/dd": secret("o")}, "system", false, "", ErrUnusable},
		// Another account's credentials must not stand in while the API server has trouble.
		"one that can't be read": {cluster{"system/dd": nil, "shop/dd": secret("r")}, "system", false, "", errForbidden},
		"newline at the end":     {cluster{"shop/dd": secret("r\n")}, "", false, "r", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := Finder{Read: tc.secrets.read, Shared: tc.shared}
			got, err := f.Find(context.Background(), Want{Namespace: "shop", Name: "dd", Own: tc.own, Keys: []string{"token"}})
			if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				return
			}
			if diff := cmp.Diff(Values{"token": tc.want, "region": "eu"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What else is in the shared namespace is none of a tenant's business.
func TestMissingAndLackingLookAlike(t *testing.T) {
	text := func(c cluster) string {
		_, err := Finder{Read: c.read, Shared: "system"}.Find(context.Background(), Want{Namespace: "shop", Name: "dd", Keys: []string{"token"}})
		if err == nil {
			t.Fatal("got no error")
		}
		return err.Error()
	}
	if diff := cmp.Diff(text(cluster{}), text(cluster{"system/dd": {"other": []byte("x")}})); diff != "" {
		t.Errorf("(-missing +lacking):\n%s", diff)
	}
}

func TestRedactor(t *testing.T) {
	v := Values{"token": "t0ken", "region": "eu"}
	got := v.Redactor(analysis.MakeRedactor("argument"), "token", "absent").Redact("argument t0ken eu")
	if want := strings.Repeat(analysis.Redacted+" ", 2) + "eu"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package templatehash_test

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/templatehash"
)

func TestHashIsPinned(t *testing.T) {
	// These values are in clusters: a change here restarts every rollout.
	tests := map[string]struct{ in, want string }{
		"empty":   {in: `{}`, want: "2a1a95cde1"},
		"typical": {in: `{"metadata":{"labels":{"app":"shop"}},"spec":{"containers":[{"name":"app","image":"shop:1","ports":[{"containerPort":8080}]}]}}`, want: "2c0ba09214"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := templatehash.Hash(templatehash.Version, []byte(tc.in))
			if err != nil || got != tc.want {
				t.Errorf("Hash = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestHashIgnoresNoise(t *testing.T) {
	const base = `{"metadata":{"labels":{"a":"b"}},"spec":{"x":1,"l":[1,null],"s":"<&>"}}`
	tests := map[string]struct {
		in   string
		same bool
	}{
		"order of keys":                {`{"spec":{"s":"<&>","l":[1,null],"x":1},"metadata":{"labels":{"a":"b"}}}`, true},
		"C109 creationTimestamp null":  {`{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}},"spec":{"x":1,"l":[1,null],"s":"<&>"}}`, true},
		"creationTimestamp with value": {`{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z","labels":{"a":"b"}},"spec":{"x":1,"l":[1,null],"s":"<&>"}}`, true},
		"C109 empty status":            {`{"status":{},"metadata":{"labels":{"a":"b"}},"spec":{"x":1,"l":[1,null],"s":"<&>"}}`, true},
		"null field":                   {`{"metadata":{"labels":{"a":"b"}},"spec":{"y":null,"x":1,"l":[1,null],"s":"<&>"}}`, true},
		"spelling of a number":         {`{"metadata":{"labels":{"a":"b"}},"spec":{"x":1.0,"l":[1e0,null],"s":"<&>"}}`, true},
		"escaped string":               {`{"metadata":{"labels":{"a":"b"}},"spec":{"x":1,"l":[1,null],"s":"\u003c&>"}}`, true},
		"other value":                  {`{"metadata":{"labels":{"a":"b"}},"spec":{"x":2,"l":[1,null],"s":"<&>"}}`, false},
		"string for number":            {`{"metadata":{"labels":{"a":"b"}},"spec":{"x":"1","l":[1,null],"s":"<&>"}}`, false},
		"order of a list":              {`{"metadata":{"labels":{"a":"b"}},"spec":{"x":1,"l":[null,1],"s":"<&>"}}`, false},
		"status below the top counts":  {`{"metadata":{"labels":{"a":"b"}},"spec":{"status":{},"x":1,"l":[1,null],"s":"<&>"}}`, false},
	}
	want, err := templatehash.Hash(templatehash.Version, []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := templatehash.Hash(templatehash.Version, []byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if (got == want) != tc.same {
				t.Errorf("hash %q against %q: want same=%v", got, want, tc.same)
			}
		})
	}
}

func TestHashRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"not JSON": `{`, "a list": `[]`, "more data": `{} {}`, "a huge number": `{"a":1e999}`,
	} {
		if got, err := templatehash.Hash(templatehash.Version, []byte(in)); err == nil {
			t.Errorf("%s: Hash = %q, want an error", name, got)
		}
	}
	var unknown *templatehash.UnknownVersionError
	if _, err := templatehash.Hash("0", []byte(`{}`)); !errors.As(err, &unknown) {
		t.Errorf("err = %v, want an UnknownVersionError", err)
	}
}

// A round trip through any JSON encoder must keep the identity.
func TestHashSurvivesRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.MapOf(rapid.String(), rapid.OneOf(
			rapid.Map(rapid.Int64(), func(i int64) any { return i }),
			rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }),
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		)).Draw(t, "template")
		first, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := templatehash.Canonical(first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := templatehash.Canonical(canonical)
		if err != nil || string(again) != string(canonical) {
			t.Fatalf("canonical form is not a fixed point: %s against %s (%v)", again, canonical, err)
		}
	})
}

package analysis

import (
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGraphiteParameters(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		want  url.Values
		err   error
	}{
		"one target":             {"target=a.b.count", url.Values{"target": {"a.b.count"}}, nil},
		"over several lines":     {"target=summarize(\n  sumSeries(a.{x,y}.*),\n  '5min',\n  'avg'\n)\n", url.Values{"target": {"summarize(sumSeries(a.{x,y}.*),'5min','avg')"}}, nil},
		"a window":               {"target=a & from=-5min & until=now", url.Values{"target": {"a"}, "from": {"-5min"}, "until": {"now"}}, nil},
		"two targets":            {"target=a&target=b", url.Values{"target": {"a", "b"}}, nil},
		"blanks in quotes":       {`target=alias(a, "my name")`, url.Values{"target": {`alias(a,"my name")`}}, nil},
		"an ampersand in quotes": {`target=alias(a,'b&c')`, url.Values{"target": {"alias(a,'b&c')"}}, nil},
		"an escaped quote":       {`target=alias(a,'b\' &c')`, url.Values{"target": {`alias(a,'b\' &c')`}}, nil},
		"tags":                   {"target=seriesByTag('name=a','app=b')", url.Values{"target": {"seriesByTag('name=a','app=b')"}}, nil},
		"a semicolon":            {"target=a;app=b", url.Values{"target": {"a;app=b"}}, nil},
		"percent-encoded":        {"target=alias(a,%27b%20%26c%27)", url.Values{"target": {"alias(a,'b &c')"}}, nil},
		"an ampersand too many":  {"&target=a&&", url.Values{"target": {"a"}}, nil},
		"no target":              {"from=-5min", nil, errGraphiteTarget},
		"no parameters":          {"stats.errors", nil, errGraphiteTarget},
		"an empty target":        {"target=", nil, errGraphiteTarget},
		"nothing":                {"", nil, errGraphiteTarget},
		"an open quote":          {"target=alias(a,'b)", nil, errGraphiteQuote},
		"a bare percent sign":    {"target=grep(a,'5%')", nil, url.EscapeError("%'")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := GraphiteParameters(tc.query)
			if tc.err != nil {
				var escape url.EscapeError
				if !errors.Is(err, tc.err) && !errors.As(err, &escape) {
					t.Fatalf("got %v, want %v", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

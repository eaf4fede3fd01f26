package analysis

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// queryField is a field of a provider that holds code.
type queryField struct {
	name string
	lang language
	text *string
}

// queryFields are those of the provider that is set.
func queryFields(p *v1alpha1.MetricProvider) []queryField {
	switch {
	case p.Prometheus != nil:
		return []queryField{{"prometheus.query", promQL, &p.Prometheus.Query}}
	case p.NewRelic != nil:
		return []queryField{{"newRelic.query", nrql, &p.NewRelic.Query}}
	case p.Influxdb != nil:
		return []queryField{{"influxdb.query", flux, &p.Influxdb.Query}}
	case p.Wavefront != nil:
		return []queryField{{"wavefront.query", wavefrontQL, &p.Wavefront.Query}}
	case p.SkyWalking != nil:
		return []queryField{{"skywalking.query", graphQL, &p.SkyWalking.Query}}
	case p.Graphite != nil:
		return []queryField{{"graphite.query", graphiteQL, &p.Graphite.Query}}
	case p.Datadog != nil:
		return []queryField{{"datadog.query", datadogQL, &p.Datadog.Query}, {"datadog.formula", datadogQL, &p.Datadog.Formula}}
	}
	return nil
}

// queryTexts are queries with their arguments put in.
type queryTexts struct {
	fields []string
	// named are Datadog's.
	named map[string]string
}

// takeQueries takes the queries out of a provider, with the arguments put in.
func takeQueries(p *v1alpha1.MetricProvider, values map[string]string) (queryTexts, error) {
	var out queryTexts
	for _, f := range queryFields(p) {
		text, err := inQuery(f.lang, *f.text, values)
		if err != nil {
			return queryTexts{}, fmt.Errorf("%s: %w", f.name, err)
		}
		out.fields = append(out.fields, text)
		*f.text = ""
	}
	if p.Datadog == nil || p.Datadog.Queries == nil {
		return out, nil
	}
	out.named = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(p.Datadog.Queries)) {
		name, err := inText(key, values)
		if err != nil {
			return queryTexts{}, fmt.Errorf("datadog.queries: %s: %w", key, err)
		}
		if _, taken := out.named[name]; taken {
			return queryTexts{}, fmt.Errorf("datadog.queries: %s: %w", key, errSameKey)
		}
		if out.named[name], err = inQuery(datadogQL, p.Datadog.Queries[key], values); err != nil {
			return queryTexts{}, fmt.Errorf("datadog.queries.%s: %w", key, err)
		}
	}
	p.Datadog.Queries = nil
	return out, nil
}

func (q queryTexts) putInto(p *v1alpha1.MetricProvider) {
	for i, f := range queryFields(p) {
		*f.text = q.fields[i]
	}
	if p.Datadog != nil {
		p.Datadog.Queries = q.named
	}
}

func inQuery(lang language, s string, values map[string]string) (string, error) {
	if lang == graphiteQL {
		return inGraphite(s, values)
	}
	return inCode(lang, s, values, false)
}

var (
	errHalfEncoded = errors.New("a placeholder can't stand behind a percent sign, which it would go on with")
	halfEncoded    = regexp.MustCompile(`%[0-9A-Fa-f]?$`)
	encoded        = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// decodeParameter leaves a % that encodes nothing as it is.
func decodeParameter(s string) string {
	return encoded.ReplaceAllStringFunc(s, func(code string) string {
		n, err := strconv.ParseUint(code[1:], 16, 8)
		if err != nil {
			return code
		}
		return string([]byte{byte(n)})
	})
}

// inGraphite holds a value within its quotes like any query, and percent-encodes what
// stands in a parameter's value, so that it stays one. A percent sign is encoded too, and
// quotes that the query has percent-encoded are seen: the parameters are decoded later,
// by GraphiteParameters.
func inGraphite(s string, values map[string]string) (string, error) {
	lex := lexer{lang: graphiteQL}
	parameter := ""
	return replace(s, func(before, name string) (string, error) {
		if halfEncoded.MatchString(before) {
			return "", fmt.Errorf("args.%s: %w", name, errHalfEncoded)
		}
		lex.feed(decodeParameter(before))
		value, err := lookupArg(values, name)
		if err != nil {
			return "", err
		}
		placed, err := lex.place(value, false)
		if err != nil {
			return "", fmt.Errorf("args.%s: %w", name, err)
		}
		parameter += before
		parameter = parameter[strings.LastIndexByte(parameter, '&')+1:]
		if strings.Contains(parameter, "=") {
			placed = percentEncode(placed, "-_.~", "%20")
		}
		parameter += placed
		return placed, nil
	})
}

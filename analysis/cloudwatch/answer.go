package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
)

// ErrRefused says that AWS gives no values for a query, which is not the same as that
// there are none.
var ErrRefused = errors.New("CloudWatch gives no values for a query")

// ErrPartial says that AWS left a part of the values out, of which the rest tells nothing.
var ErrPartial = errors.New("CloudWatch leaves values out: ask for less, or aggregate")

// errNoResults says that an answer is not CloudWatch's, whose list of results may be empty
// but is there.
var errNoResults = errors.New("the answer is not CloudWatch's: it has no results")

// answer is what all pages say. Messages are those about the whole of it.
type answer struct {
	series   []types.MetricDataResult
	messages []types.MessageData
}

// read asks for all pages.
func read(ctx context.Context, client *cloudwatch.Client, in *cloudwatch.GetMetricDataInput) (answer, error) {
	var a answer
	pages := cloudwatch.NewGetMetricDataPaginator(client, in)
	for n := 0; pages.HasMorePages(); n++ {
		if n == maxPages {
			return answer{}, ErrTooManyPages
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			return answer{}, err
		}
		if page.MetricDataResults == nil {
			return answer{}, errNoResults
		}
		a.messages = append(a.messages, page.Messages...)
		for _, s := range page.MetricDataResults {
			a.add(s)
		}
	}
	return a, nil
}

// add appends a series, or what one that began on an earlier page goes on with.
func (a *answer) add(s types.MetricDataResult) {
	for i := range a.series {
		known := &a.series[i]
		if aws.ToString(known.Id) != aws.ToString(s.Id) || aws.ToString(known.Label) != aws.ToString(s.Label) || known.StatusCode != types.StatusCodePartialData {
			continue
		}
		known.StatusCode = s.StatusCode
		known.Values = append(known.Values, s.Values...)
		known.Timestamps = append(known.Timestamps, s.Timestamps...)
		known.Messages = append(known.Messages, s.Messages...)
		return
	}
	a.series = append(a.series, s)
}

// refused is ErrRefused for a series without a right or with an error at AWS, and
// ErrPartial for one that no page completed. A message about the whole answer is
// ErrPartial too: by AWS's specification of GetMetricData it comes where no more than "as
// much of the operation as possible" was executed, as with too many metrics.
func (a *answer) refused() error {
	if len(a.messages) > 0 {
		return fmt.Errorf("%w: %s", ErrPartial, words(a.messages))
	}
	for _, s := range a.series {
		if s.StatusCode == types.StatusCodeForbidden || s.StatusCode == types.StatusCodeInternalError {
			return fmt.Errorf("%w: %s is %s: %s", ErrRefused, aws.ToString(s.Id), s.StatusCode, words(s.Messages))
		}
		if s.StatusCode == types.StatusCodePartialData {
			return fmt.Errorf("%w: %s is %s: %s", ErrPartial, aws.ToString(s.Id), s.StatusCode, words(s.Messages))
		}
	}
	return nil
}

// value has the series in the order of the queries and their labels.
func (a *answer) value(places map[string]int) any {
	sort.SliceStable(a.series, func(i, j int) bool {
		x, y := places[aws.ToString(a.series[i].Id)], places[aws.ToString(a.series[j].Id)]
		if x != y {
			return x < y
		}
		return aws.ToString(a.series[i].Label) < aws.ToString(a.series[j].Label)
	})
	list := make([]any, len(a.series))
	for i, s := range a.series {
		list[i] = seriesValue(s)
	}
	return list
}

func seriesValue(s types.MetricDataResult) map[string]any {
	values, timestamps, messages := []any{}, []any{}, []any{}
	for _, v := range s.Values {
		values = append(values, v)
	}
	for _, t := range s.Timestamps {
		timestamps = append(timestamps, t.UTC().Format(time.RFC3339))
	}
	for _, m := range s.Messages {
		messages = append(messages, map[string]any{"Code": aws.ToString(m.Code), "Value": aws.ToString(m.Value)})
	}
	return map[string]any{
		"Id": aws.ToString(s.Id), "Label": aws.ToString(s.Label), "StatusCode": string(s.StatusCode),
		"Values": values, "Timestamps": timestamps, "Messages": messages,
	}
}

// metadata are the messages about series.
func (a *answer) metadata(r analysis.Redactor) map[string]string {
	var all []types.MessageData
	for _, s := range a.series {
		all = append(all, s.Messages...)
	}
	if len(all) == 0 {
		return nil
	}
	return map[string]string{MessagesMetadata: providerhttp.Words(words(all), r)}
}

func words(messages []types.MessageData) string {
	texts := make([]string, len(messages))
	for i, m := range messages {
		texts[i] = aws.ToString(m.Code) + ": " + aws.ToString(m.Value)
	}
	return strings.Join(texts, "; ")
}

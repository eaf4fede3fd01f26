package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// timeout of a measurement.
	timeout = 30 * time.Second
	// defaultInterval is how far back is looked, Argo's.
	defaultInterval = 5 * time.Minute
	// maxPages is the most pages of one answer that are read.
	maxPages = 20
	// MessagesMetadata is the key under which AWS's messages are kept, Argo's.
	MessagesMetadata = "messages"
)

// ErrTooManyPages says that an answer has more than 20 pages.
var ErrTooManyPages = errors.New("the answer has more than 20 pages: ask for less, or aggregate")

// Options of the provider.
type Options struct {
	// AWS says who asks, in which region.
	AWS *awsauth.Sessions
}

// Provider asks CloudWatch. It is safe for concurrent use.
type Provider struct{ aws *awsauth.Sessions }

// New makes a Provider.
func New(o Options) *Provider { return &Provider{aws: o.AWS} }

var _ analysis.Provider = (*Provider)(nil)

// Measure asks for what the queries return of the time before the measurement.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	m := q.Provider.CloudWatch
	if m == nil {
		return nil, fmt.Errorf("metric %q has no provider.cloudWatch", q.Metric)
	}
	input, err := input(*m, q.At)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config, err := p.aws.Config(ctx, awsauth.Identity{})
	if err != nil {
		return nil, providerhttp.PlainError("cloudWatch", err, timeout, q.Redactor)
	}
	secrets := &awsauth.Secrets{}
	config = secrets.Watch(config)
	config.HTTPClient = foreign{config.HTTPClient}
	a, err := read(ctx, cloudwatch.NewFromConfig(config), input)
	redactor := secrets.Redactor(q.Redactor)
	if err == nil {
		err = a.refused()
	}
	if err != nil {
		return nil, providerhttp.PlainError("cloudWatch", err, timeout, redactor)
	}
	return analysis.Sample{Value: a.value(order(input)), Redactor: redactor, Metadata: a.metadata(redactor)}, nil
}

func input(m v1alpha1.CloudWatchMetric, at time.Time) (*cloudwatch.GetMetricDataInput, error) {
	interval := defaultInterval
	if m.Interval != "" {
		var err error
		if interval, err = analysis.ParseDuration(m.Interval); err != nil {
			return nil, fmt.Errorf("interval: %w", err)
		}
	}
	queries, err := analysis.CloudWatchQueries(m)
	if err != nil {
		return nil, err
	}
	in := &cloudwatch.GetMetricDataInput{StartTime: aws.Time(at.Add(-interval)), EndTime: aws.Time(at), ScanBy: types.ScanByTimestampDescending}
	for i, q := range queries {
		converted, err := convert(q)
		if err != nil {
			return nil, fmt.Errorf("metricDataQueries[%d]: %w", i, err)
		}
		in.MetricDataQueries = append(in.MetricDataQueries, converted)
	}
	return in, nil
}

func convert(q analysis.CloudWatchQuery) (types.MetricDataQuery, error) {
	out := types.MetricDataQuery{Id: text(q.ID), AccountId: text(q.AccountID), Expression: text(q.Expression), Label: text(q.Label), ReturnData: q.ReturnData}
	var err error
	if out.Period, err = analysis.Seconds(q.Period); err != nil {
		return out, fmt.Errorf("period: %w", err)
	}
	s := q.MetricStat
	if s == nil {
		return out, nil
	}
	stat := &types.MetricStat{
		Metric: &types.Metric{Namespace: text(s.Metric.Namespace), MetricName: text(s.Metric.MetricName)},
		Stat:   text(s.Stat), Unit: types.StandardUnit(s.Unit),
	}
	if stat.Period, err = analysis.Seconds(s.Period); err != nil {
		return out, fmt.Errorf("metricStat.period: %w", err)
	}
	for _, d := range s.Metric.Dimensions {
		stat.Metric.Dimensions = append(stat.Metric.Dimensions, types.Dimension{Name: text(d.Name), Value: text(d.Value)})
	}
	out.MetricStat = stat
	return out, nil
}

// text is nil for a field that isn't given.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// order is the place of each id.
func order(in *cloudwatch.GetMetricDataInput) map[string]int {
	places := map[string]int{}
	for i, q := range in.MetricDataQueries {
		places[aws.ToString(q.Id)] = i
	}
	return places
}

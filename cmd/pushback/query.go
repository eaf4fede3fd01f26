package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
)

func newQueryCommand() *cobra.Command {
	var output outputFlag
	var at string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "query URL EXPR",
		Short: "Ask a Prometheus API one question",
		Long: `query evaluates a PromQL expression at one moment and prints the answer, a line
a series. An expression that the server refuses is an error with its words.`,
		Example: `  pushback query http://localhost:9090 up
  pushback query http://localhost:9090 'sum by (version) (rate(http_requests_total{code="500"}[30s]))'
  pushback query http://localhost:9090 up --time 2026-06-01T12:00:00Z -o json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			moment, err := parseMoment(at)
			if err != nil {
				return err
			}
			client, err := api.NewClient(api.Config{Address: args[0]})
			if err != nil {
				return fmt.Errorf("the URL %q: %w", args[0], err)
			}
			value, warnings, infos, err := promv1.NewAPI(client).Query(cmd.Context(), args[1], moment, promv1.WithTimeout(timeout))
			for _, w := range append(warnings, infos...) {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
			}
			if err != nil {
				return queryError(args[0], err)
			}
			if output.json() {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"resultType": value.Type().String(), "result": value})
			}
			return printValue(cmd.OutOrStdout(), value)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&at, "time", "", "moment to evaluate at, RFC 3339 or seconds since 1970 (default now)")
	flags.DurationVar(&timeout, "timeout", 30*time.Second, "how long the server may take")
	output.register(cmd, formatJSON)
	return cmd
}

// parseMoment reads nothing as now.
func parseMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.UnixMilli(int64(seconds * 1000)), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--time %q is neither RFC 3339, such as 2026-06-01T12:00:00Z, nor seconds since 1970", text)
	}
	return t, nil
}

// queryError says in the server's words what was wrong.
func queryError(url string, err error) error {
	if known := (*promv1.Error)(nil); errors.As(err, &known) {
		if known.Detail != "" && known.Type != promv1.ErrBadData {
			return fmt.Errorf("%s: %s: %s (%s)", url, known.Type, known.Msg, known.Detail)
		}
		return fmt.Errorf("%s: %s: %s", url, known.Type, known.Msg)
	}
	return err
}

func printValue(out io.Writer, value model.Value) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	switch v := value.(type) {
	case model.Vector:
		if len(v) == 0 {
			fmt.Fprintln(table, "no series")
			break
		}
		fmt.Fprintln(table, "SERIES\tVALUE")
		for _, s := range v {
			sample := s.Value.String()
			if s.Histogram != nil {
				sample = s.Histogram.String()
			}
			fmt.Fprintf(table, "%s\t%s\n", s.Metric, sample)
		}
	case model.Matrix:
		if len(v) == 0 {
			fmt.Fprintln(table, "no series")
			break
		}
		fmt.Fprintln(table, "SERIES\tTIME\tVALUE")
		for _, series := range v {
			for _, p := range series.Values {
				fmt.Fprintf(table, "%s\t%s\t%s\n", series.Metric, p.Timestamp.Time().UTC().Format(time.RFC3339Nano), p.Value)
			}
			for _, p := range series.Histograms {
				fmt.Fprintf(table, "%s\t%s\t%s\n", series.Metric, p.Timestamp.Time().UTC().Format(time.RFC3339Nano), p.Histogram)
			}
		}
	case *model.Scalar:
		fmt.Fprintln(table, v.Value)
	case *model.String:
		fmt.Fprintln(table, v.Value)
	default:
		return fmt.Errorf("the server answered with a %s, which can't be printed", value.Type())
	}
	return table.Flush()
}

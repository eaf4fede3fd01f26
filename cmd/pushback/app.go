package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/lab/app"
	"github.com/pushback-dev/pushback/lab/exact"
)

// appVariables are the flags of app that the environment can set.
var appVariables = map[string]string{
	"listen": "PUSHBACK_LISTEN", "version": "APP_VERSION", "error-rate": "ERROR_RATE",
	"latency": "LATENCY", "drain": "DRAIN",
}

func newAppCommand() *cobra.Command {
	o := app.Options{Listen: ":8080"}
	cmd := &cobra.Command{
		Use:   "app --version VERSION",
		Short: "Run a service that names its version and fails an exact share of requests",
		Long: `app is an HTTP service to roll out. Every path answers 200 and names the
version, in the body and in the header X-App-Version, or answers 500 for exactly
the share of requests that --error-rate says: at 0.08, exactly 8 of any 100.

  /healthz       200; 503 from the moment it is told to stop
  /admin/errors  GET shows the error rate, POST or PUT changes it
  /metrics       http_requests_total and http_request_duration_seconds,
                 by code and version

Flags that are not given are taken from the environment: APP_VERSION, ERROR_RATE,
LATENCY, DRAIN and PUSHBACK_LISTEN.`,
		Example: `  pushback app --version v1
  pushback app --version v2 --error-rate 0.5 --latency 5ms --listen 127.0.0.1:8081
  curl -X POST 'localhost:8080/admin/errors?rate=0.25'
  curl -X PUT -d '{"rate":0.25}' localhost:8080/admin/errors`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags(), appVariables); err != nil {
				return err
			}
			if o.Version == "" {
				return fmt.Errorf("%w: give --version or set APP_VERSION", app.ErrNoVersion)
			}
			o.OnListen = func(address net.Addr) {
				fmt.Fprintf(cmd.OutOrStdout(), "app %s listens on %s\n", o.Version, address)
			}
			return app.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Listen, "listen", o.Listen, "address to listen on")
	flags.StringVar(&o.Version, "version", "", "what the service calls itself")
	flags.Var((*rateFlag)(&o.ErrorRate), "error-rate", "share of requests answered with 500, 0 to 1 or a percentage")
	flags.DurationVar(&o.Latency, "latency", 0, "how long every answer is held back")
	flags.DurationVar(&o.Drain, "drain", 0, "how long requests are still accepted after a SIGTERM")
	flags.DurationVar(&o.Grace, "grace", 30*time.Second, "how long requests in flight may then take to finish")
	return cmd
}

// rateFlag is a share as exact.ParseRate reads it.
type rateFlag float64

func (r *rateFlag) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }
func (r *rateFlag) Type() string   { return "rate" }

func (r *rateFlag) Set(text string) error {
	rate, err := exact.ParseRate(text)
	if err != nil {
		return err
	}
	*r = rateFlag(rate)
	return nil
}

// Command controller is the manager: it runs the controllers of GitSyncs,
// Reverts, Rollouts and AnalysisRuns, and nothing else. It is the only place that
// names concrete routers and providers.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// version is set by the build.
var version = "dev"

func main() {
	settings, err := parseSettings(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(ctrl.SetupSignalHandler(), settings); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&s.log)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to talk to: %w", err)
	}
	config.QPS, config.Burst = s.qps, s.burst
	config.UserAgent = "pushback-controller/" + version
	mgr, err := makeManager(config, s)
	if err != nil {
		return err
	}
	if err := setUp(mgr, s); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version)
	return mgr.Start(ctx)
}

func makeManager(config *rest.Config, s settings) (ctrl.Manager, error) {
	scheme, err := makeScheme()
	if err != nil {
		return nil, err
	}
	release := true
	grace := 20 * time.Second
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(s.namespaces),
		Metrics:                       metricsserver.Options{BindAddress: s.metricsAddr},
		HealthProbeBindAddress:        s.healthAddr,
		LeaderElection:                s.leaderElect,
		LeaderElectionID:              "pushback-controller",
		LeaderElectionNamespace:       s.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: release,
		GracefulShutdownTimeout:       &grace,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	// Alive is not the same as caught up: a long queue must not get the pod killed.
	if err := mgr.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("alive", healthz.Ping)
}

package main

import (
	"flag"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/pushback-dev/pushback/analysis/awsauth"
)

// settings are the flags.
type settings struct {
	metricsAddr, healthAddr string
	leaderElect             bool
	leaderElectionNamespace string
	namespaces              []string
	concurrent              int
	qps                     float32
	burst                   int
	prometheusAddress       string
	sigv4Hosts              awsauth.Hosts
	sharedSecrets           string
	defaultServiceAccount   string
	clusterName             string
	allowFileURLs           bool
	allowLinkLocal          bool
	log                     zap.Options
}

func parseSettings(args []string) (settings, error) {
	s := settings{}
	set := flag.NewFlagSet("controller", flag.ContinueOnError)
	config.RegisterFlags(set) // --kubeconfig
	set.StringVar(&s.metricsAddr, "metrics-addr", ":8080", "address of the metrics; 0 turns them off")
	set.StringVar(&s.healthAddr, "health-addr", ":9440", "address of /healthz and /readyz; 0 turns them off")
	set.BoolVar(&s.leaderElect, "leader-elect", false, "run only while holding the lease, so that several replicas can stand by")
	set.StringVar(&s.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease; default the pod's own")
	namespaces := set.String("watch-namespaces", "", "namespaces to watch, separated by commas; default all")
	set.IntVar(&s.concurrent, "concurrent", 10, "reconciles at a time, for each controller")
	qps := set.Float64("kube-api-qps", -1, "requests per second to the API server, for each kind; 0 or less for no limit, since the server's API Priority and Fairness shares it out by itself, and behind a limit of ours an abort would wait for all other requests")
	set.IntVar(&s.burst, "kube-api-burst", 300, "requests at once to the API server, where --kube-api-qps sets a limit")
	set.StringVar(&s.prometheusAddress, "prometheus-address", "", "address for metrics that name none, such as http://prometheus.monitoring:9090")
	sigv4Hosts := set.String("sigv4-hosts", strings.Join(awsauth.DefaultHosts(), ","), "hosts that requests of metrics with authentication.sigv4 are signed for, with all names below them, separated by commas; it takes the place of the default")
	set.StringVar(&s.sharedSecrets, "shared-secrets-namespace", "", "namespace whose Secrets with the keys of metric providers (datadog and the like) the runs of every namespace may use; default the pod's own, and - for none")
	set.StringVar(&s.defaultServiceAccount, "default-service-account", "", "ServiceAccount of a GitSync's namespace that is impersonated for its applies when it names none; empty applies with the controller's own rights")
	set.StringVar(&s.clusterName, "cluster-name", "", "name of this cluster, compared with spec.revert.owner, and named in revert commits")
	set.BoolVar(&s.allowFileURLs, "allow-file-urls", false, "allow GitSyncs with file:// URLs (for trials on one machine)")
	set.BoolVar(&s.allowLinkLocal, "allow-link-local-providers", false, "allow metric providers at link-local addresses and at the API server")
	s.log.BindFlags(set)
	if err := set.Parse(args); err != nil {
		return s, err
	}
	if set.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: there are flags only, see --help", set.Arg(0))
	}
	if s.concurrent < 1 {
		return s, fmt.Errorf("--concurrent must be at least 1, not %d", s.concurrent)
	}
	var err error
	if s.sigv4Hosts, err = awsauth.ParseHosts(*sigv4Hosts); err != nil {
		return s, fmt.Errorf("--sigv4-hosts: %w", err)
	}
	if s.qps = float32(*qps); s.qps <= 0 {
		s.qps = -1 // 0 is 5 to the client
	}
	for _, namespace := range strings.Split(*namespaces, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			s.namespaces = append(s.namespaces, namespace)
		}
	}
	return s, nil
}

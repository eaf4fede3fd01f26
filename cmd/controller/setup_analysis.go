package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth"
	"github.com/pushback-dev/pushback/analysis/cloudwatch"
	"github.com/pushback-dev/pushback/analysis/job"
	"github.com/pushback-dev/pushback/analysis/kayenta"
	"github.com/pushback-dev/pushback/analysis/prometheus"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/analysis/web"
	"github.com/pushback-dev/pushback/internal/egress"
	"github.com/pushback-dev/pushback/reconciler/analysisrun"
)

func setUpAnalysis(mgr ctrl.Manager, s settings) error {
	policy, err := makePolicy(mgr.GetConfig(), s.allowLinkLocal)
	if err != nil {
		return err
	}
	shared, err := sharedSecrets(s.sharedSecrets, podNamespaceFile)
	if err != nil {
		return err
	}
	aws := awsauth.NewSessions(awsauth.Options{Egress: policy})
	providers := map[string]analysis.Provider{
		"prometheus": prometheus.New(prometheus.Options{DefaultAddress: s.prometheusAddress, Egress: policy, AWS: aws, SignedHosts: s.sigv4Hosts}),
		"cloudWatch": cloudwatch.New(cloudwatch.Options{AWS: aws}),
		"web":        web.New(web.Options{Egress: policy}),
		"kayenta":    kayenta.New(kayenta.Options{Egress: policy}),
		"job":        job.New(job.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}),
	}
	secrets := providersecret.Finder{Read: secretReader(mgr.GetAPIReader()), Shared: shared}
	maps.Copy(providers, vendors(secrets, policy, os.Getenv))
	return analysisrun.SetupWithManager(mgr, analysisrun.Options{Providers: analysisrun.ByName(providers), Now: now})
}

// lookupTimeout bounds finding the API server's addresses.
const lookupTimeout = 10 * time.Second

// makePolicy keeps templates, which users write, from asking the API server with
// the controller's place in the network; link-local addresses are refused anyway.
func makePolicy(config *rest.Config, allowAll bool) (egress.Policy, error) {
	if allowAll {
		return egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}, nil
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return egress.Policy{}, fmt.Errorf("reading the API server's address: %w", err)
	}
	port, err := portOf(server)
	if err != nil {
		return egress.Policy{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", server.Hostname())
	if err != nil {
		return egress.Policy{}, fmt.Errorf("looking up the API server's address: %w", err)
	}
	policy := egress.Policy{}
	for _, address := range addresses {
		policy.Deny = append(policy.Deny, netip.AddrPortFrom(address.Unmap(), port))
	}
	return policy, nil
}

func portOf(server *url.URL) (uint16, error) {
	text := server.Port()
	if text == "" {
		text = map[string]string{"http": "80"}[server.Scheme]
	}
	if text == "" {
		text = "443"
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's port: %w", err)
	}
	return uint16(port), nil
}

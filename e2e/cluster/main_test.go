package cluster_test

import (
	"os"
	"testing"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

var shared = clustertest.New(cluster.Options{AuditWrites: true}, (*cluster.Cluster).InstallGatewayAPI)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

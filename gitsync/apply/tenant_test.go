package apply

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

func TestC56_ATenantStaysInItsNamespace(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	b.mustApply(
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: tenant}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: tenant}]}",
	)
	config := rest.CopyConfig(b.cluster.RESTConfig())
	config.Impersonate.UserName = "system:serviceaccount:" + b.namespace + ":tenant"
	b.applier.Client = newClient(t, config)
	b.in.Inventory = nil
	wrote := other.writesDuring(func() {
		out := b.apply(settings,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+other.namespace+"}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: evil-"+b.namespace+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: tenant, namespace: "+b.namespace+"}]}")
		forbidden := 0
		for _, failure := range out.Failures {
			if apierrors.IsForbidden(failure) {
				forbidden++
			}
		}
		if forbidden != 2 || len(out.Failures) != 2 || actions(out)["ConfigMap/settings"] != Created {
			t.Errorf("want two Forbidden and one created, got %v and %v", failures(out), actions(out))
		}
	})
	for _, write := range wrote {
		if strings.Contains(write, "configmaps/theirs") && other.exists("v1", "ConfigMap", "theirs") {
			t.Errorf("the tenant wrote %s", write)
		}
	}
	// What was refused was never made: once it has left Git there is nothing to prune.
	if out := b.apply(settings); len(out.Failures) > 0 || len(out.Inventory) != 1 {
		t.Errorf("want the tree to be in order again, got %v and the inventory %v", failures(out), out.Inventory)
	}
}

func TestTargetNamespaceOverridesAll(t *testing.T) {
	b, target := newBench(t), newBench(t)
	b.in.TargetNamespace = target.namespace
	b.mustApply(settings, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: elsewhere}}")
	if !target.exists("v1", "ConfigMap", "settings") || !target.exists("v1", "ConfigMap", "other") || b.exists("v1", "ConfigMap", "settings") {
		t.Error("the objects are not in the target namespace")
	}
}

package main

import (
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Secrets are read one by one where they are named; who may list them has them all.
func TestC116_SecretsAreOnlyRead(t *testing.T) {
	text, err := os.ReadFile("../../manifests/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, rule := range role.Rules {
		if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") {
			t.Errorf("a rule grants everything: %+v", rule)
		}
		if slices.Contains(rule.Resources, "secrets") {
			found = true
			if !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("Secrets may be %v", rule.Verbs)
			}
		}
	}
	if !found {
		t.Error("no rule is about Secrets, so this test shows nothing")
	}
}

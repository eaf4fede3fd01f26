package controller

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// tenants makes clients with the rights of service accounts. They share their
// connections and what is known of the kinds, so that none is kept: GitSyncs come
// and go.
type tenants struct {
	config *rest.Config
	own    client.Client
}

// client is that of a GitSync's service account, or of the default one in its
// namespace; the controller's own when there is neither.
func (t *tenants) client(sync *v1alpha1.GitSync, defaultAccount string) (client.Client, error) {
	account := sync.Spec.ServiceAccountName
	if account == "" {
		account = defaultAccount
	}
	if account == "" {
		return t.own, nil
	}
	user := fmt.Sprintf("system:serviceaccount:%s:%s", sync.Namespace, account)
	config := rest.CopyConfig(t.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	made, err := client.New(config, client.Options{Scheme: t.own.Scheme(), Mapper: t.own.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", user, err)
	}
	return made, nil
}

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig is RESTConfig as a kubeconfig, for kubectl and for child processes.
func (c *Cluster) Kubeconfig() ([]byte, error) {
	return clientcmd.Write(kubeconfigOf(c.RESTConfig()))
}

// WriteKubeconfig writes Kubeconfig to the path, in one step, for this user only; the folder is made.
func (c *Cluster) WriteKubeconfig(path string) error { return WriteKubeconfig(c.RESTConfig(), path) }

// WriteKubeconfig writes a kubeconfig of the server, its CA and proxy, and the bearer token of the client
// configuration. What else it may log in with is not written: a ServiceAccountConfig has nothing else.
func WriteKubeconfig(config *rest.Config, path string) error {
	text, err := clientcmd.Write(kubeconfigOf(config))
	if err != nil {
		return fmt.Errorf("printing the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of the kubeconfig: %w", err)
	}
	partial := path + ".partial"
	if err := os.WriteFile(partial, text, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if err := os.Rename(partial, path); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

func kubeconfigOf(config *rest.Config) clientcmdapi.Config {
	const name = "pushback"
	server := &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
		TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure, ProxyURL: proxyOf(config),
	}
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: server},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

// proxyOf is the proxy of the configuration; without one of its own, a reader takes the environment's too.
func proxyOf(config *rest.Config) string {
	if config.Proxy == nil {
		return ""
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return ""
	}
	proxy, err := config.Proxy(&http.Request{URL: server})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}

// ServiceAccountConfig is the package's ServiceAccountConfig with the administrator's rights.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	return ServiceAccountConfig(ctx, c.RESTConfig(), namespace, name)
}

// ServiceAccountConfig is a new configuration of a client of the same server with exactly the rights of the
// service account, which must exist. Its token is good for a day, or for as long as the server allows.
// The given configuration's user needs create on serviceaccounts/token.
func ServiceAccountConfig(ctx context.Context, config *rest.Config, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	const day = int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(day)}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token of service account %s/%s: %w", namespace, name, err)
	}
	account := rest.AnonymousClientConfig(config)
	account.BearerToken = answer.Status.Token
	return account, nil
}

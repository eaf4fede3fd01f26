package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is what a fresh cluster is trusted by: made at every start, thrown away with it.
type pki struct {
	ca         []byte // PEM
	caFile     string
	certFile   string
	keyFile    string
	signingKey string // PEM private key of service account tokens
	tokenFile  string
	adminToken string
	// The API server shows the first pair to nodes; a node serves with the second one.
	nodeClientCert, nodeClientKey string
	node                          tls.Certificate
}

// newPKI makes keys, certificates and the admin's token in the folder. The files can be read by this user only.
func newPKI(dir string) (*pki, error) {
	p := &pki{
		caFile: filepath.Join(dir, "ca.crt"), certFile: filepath.Join(dir, "apiserver.crt"), keyFile: filepath.Join(dir, "apiserver.key"),
		signingKey: filepath.Join(dir, "service-accounts.key"), tokenFile: filepath.Join(dir, "tokens.csv"),
		nodeClientCert: filepath.Join(dir, "node-client.crt"), nodeClientKey: filepath.Join(dir, "node-client.key"),
	}
	if err := p.certificates(); err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	if err := p.serviceAccountKey(); err != nil {
		return nil, fmt.Errorf("making the service account key: %w", err)
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return nil, err
	}
	p.adminToken = hex.EncodeToString(token)
	line := fmt.Sprintf("%s,admin,admin,system:masters\n", p.adminToken)
	if err := os.WriteFile(p.tokenFile, []byte(line), 0o600); err != nil {
		return nil, fmt.Errorf("writing the admin's token: %w", err)
	}
	return p, nil
}

func (p *pki) certificates() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	root := certificate(1, "pushback-test-ca")
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	ca, err := x509.CreateCertificate(rand.Reader, root, root, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
	if err := os.WriteFile(p.caFile, p.ca, 0o600); err != nil {
		return err
	}
	server := certificate(2, "kube-apiserver")
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	if err := issueFiles(server, root, caKey, p.certFile, p.keyFile); err != nil {
		return err
	}
	client := certificate(3, "kube-apiserver-node-client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := issueFiles(client, root, caKey, p.nodeClientCert, p.nodeClientKey); err != nil {
		return err
	}
	node := certificate(4, "system:node")
	node.ExtKeyUsage, node.IPAddresses = server.ExtKeyUsage, server.IPAddresses
	cert, key, err := issue(node, root, caKey)
	p.node = tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
	return err
}

// issue signs a certificate for a new key.
func issue(template, ca *x509.Certificate, caKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	cert, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	return cert, key, err
}

// issueFiles is issue into PEM files.
func issueFiles(template, ca *x509.Certificate, caKey *ecdsa.PrivateKey, certFile, keyFile string) error {
	cert, key, err := issue(template, ca, caKey)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(certFile, "CERTIFICATE", cert); err != nil {
		return err
	}
	return writePEM(keyFile, "PRIVATE KEY", der)
}

// NodeTLS is a new configuration for the server of a node (node.Options.Serving): the cluster's API server
// trusts it, and it lets in the API server alone.
func (c *Cluster) NodeTLS() *tls.Config {
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(c.pki.ca)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{c.pki.node},
		ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

func certificate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
}

func (p *pki) serviceAccountKey() error {
	// RSA because the legacy token generator of the controller manager and every client know it.
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return writePEM(p.signingKey, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

func writePEM(path, kind string, bytes []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
}

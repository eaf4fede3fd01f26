package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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
}

// newPKI makes keys, certificates and the admin's token in the folder. The files can be read by this user only.
func newPKI(dir string) (*pki, error) {
	p := &pki{
		caFile: filepath.Join(dir, "ca.crt"), certFile: filepath.Join(dir, "apiserver.crt"), keyFile: filepath.Join(dir, "apiserver.key"),
		signingKey: filepath.Join(dir, "service-accounts.key"), tokenFile: filepath.Join(dir, "tokens.csv"),
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
	caTemplate := certificate(1, "pushback-test-ca")
	caTemplate.IsCA, caTemplate.BasicConstraintsValid, caTemplate.KeyUsage = true, true, x509.KeyUsageCertSign
	ca, err := x509.CreateCertificate(rand.Reader, caTemplate, caTemplate, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	server := certificate(2, "kube-apiserver")
	server.KeyUsage, server.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	cert, err := x509.CreateCertificate(rand.Reader, server, caTemplate, serverKey.Public(), caKey)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return err
	}
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
	if err := os.WriteFile(p.caFile, p.ca, 0o600); err != nil {
		return err
	}
	if err := writePEM(p.certFile, "CERTIFICATE", cert); err != nil {
		return err
	}
	return writePEM(p.keyFile, "PRIVATE KEY", key)
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

package fetch

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshPort is used when the URL has none.
const sshPort = 22

// dialSSH connects, shakes hands and starts the service. The context bounds all
// of it: golang.org/x/crypto/ssh knows none, so that the connection is closed
// under it when the context ends.
func (w *wire) dialSSH(ctx context.Context, service string) (*pipe, error) {
	port := w.endpoint.Port
	if port == 0 {
		port = sshPort
	}
	address := net.JoinHostPort(w.url.Hostname(), strconv.Itoa(port))
	config, err := w.sshConfig(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: 30 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	client, err := handshake(conn, address, config)
	if err != nil {
		release()
		_ = conn.Close()
		return nil, err
	}
	p, err := w.startRemote(client, service)
	if err != nil {
		release()
		_ = client.Close()
		return nil, err
	}
	stop := p.stop
	p.stop = func() { release(); stop() }
	return p, nil
}

func handshake(conn net.Conn, address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// startRemote runs the service in a session of the connection.
func (w *wire) startRemote(client *ssh.Client, service string) (*pipe, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	words := &tail{}
	session.Stderr = words
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := session.Start(service + " " + quote(w.endpoint.Path)); err != nil {
		return nil, err
	}
	var once sync.Once
	wait := func() { once.Do(func() { _ = session.Wait() }) }
	stop := func() { _ = client.Close() }
	return &pipe{in: in, out: &capped{from: out, left: w.maxResponse}, errors: words, wait: wait, stop: stop}, nil
}

// sshConfig has the host's own keys only, and the algorithms that go with them.
func (w *wire) sshConfig(address string) (*ssh.ClientConfig, error) {
	a := w.remote.Auth
	if len(a.Identity) == 0 {
		return nil, w.badSecret("ssh needs a private key: add the key identity to the Secret")
	}
	signer, err := parseIdentity(a.Identity, a.Passphrase)
	if err != nil {
		return nil, w.badSecret("the private key in identity can't be read: is it in PEM, and is its passphrase under password?")
	}
	hosts, err := parseKnownHosts(a.KnownHosts)
	if err != nil {
		return nil, w.badSecret(err.Error())
	}
	algorithms := hosts.algorithms(address)
	if len(algorithms) == 0 {
		return nil, w.badSecret("known_hosts has no key of " + address + ": add it (ssh-keyscan prints it; check its fingerprint)")
	}
	return &ssh.ClientConfig{
		User: w.endpoint.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: hosts.check, HostKeyAlgorithms: algorithms,
	}, nil
}

func parseIdentity(pem []byte, passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	if _, locked := err.(*ssh.PassphraseMissingError); locked {
		return ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase))
	}
	return signer, err
}

// quote makes one word for the shell at the other end, as git itself does.
func quote(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}

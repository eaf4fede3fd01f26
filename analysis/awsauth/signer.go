package awsauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
)

// Secrets are the keys and tokens that the requests of one measurement were signed
// with, to take them out of what a server echoes. The zero value knows none.
type Secrets struct {
	mu    sync.Mutex
	known []string
}

func (s *Secrets) note(c aws.Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = append(s.known, c.SecretAccessKey, c.SessionToken)
}

// Redactor knows them beside what r knows.
func (s *Secrets) Redactor(r analysis.Redactor) analysis.Redactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == 0 {
		return r
	}
	return r.With(s.known...)
}

// Watch has credentials of a configuration noted when they are used. It returns a copy.
func (s *Secrets) Watch(c aws.Config) aws.Config {
	inner := c.Copy()
	c.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		credentials, err := retrieve(ctx, inner)
		if err == nil {
			s.note(credentials)
		}
		return credentials, err
	})
	return c
}

// Sign signs the requests of one measurement to a service of AWS, such as "aps", by
// Signature Version 4. It is to come after everything else that changes a request.
func (s *Secrets) Sign(c aws.Config, service string) providerhttp.Sign {
	c = s.Watch(c)
	signer := v4.NewSigner()
	return func(req *http.Request) error {
		credentials, err := c.Credentials.Retrieve(req.Context())
		if err != nil {
			return err
		}
		hash, err := hashBody(req)
		if err != nil {
			return err
		}
		defer withoutUnsent(req)()
		if err := signer.SignHTTP(req.Context(), credentials, req, hash, service, c.Region, time.Now()); err != nil {
			return fmt.Errorf("sign the request: %w", err)
		}
		return nil
	}
}

// withoutUnsent takes headers without values off a request until the function that it
// returns is called. They are marks for net/http, which doesn't send them (the client of
// Prometheus has one that lets a POST be repeated): a server could not check them.
func withoutUnsent(req *http.Request) (restore func()) {
	var unsent []string
	for name, values := range req.Header {
		if len(values) == 0 {
			unsent = append(unsent, name)
			delete(req.Header, name)
		}
	}
	return func() {
		for _, name := range unsent {
			req.Header[name] = nil
		}
	}
}

// hashBody leaves the body to be read again.
func hashBody(req *http.Request) (string, error) {
	var body []byte
	if req.Body != nil && req.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return "", fmt.Errorf("read the request's body: %w", err)
		}
		req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

// Package providersecret finds the Secrets from which metric providers take addresses
// and credentials: Argo's names and keys, first in the namespace whose Secrets are
// shared (the controller's own, where Argo looks), then in the run's.
//
// A Secret is read live, one by one, when a measurement needs it; nothing is kept. It
// imports no Kubernetes client and no provider.
package providersecret

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pushback-dev/pushback/analysis"
)

var (
	// ErrNotFound is what a Read gives for a Secret that isn't there.
	ErrNotFound = errors.New("there is no such Secret")
	// ErrUnusable says that no Secret has the credentials that a metric needs.
	ErrUnusable = errors.New("the credentials can't be found")
)

// Read reads one Secret. It gives ErrNotFound, perhaps wrapped, where there is none.
type Read func(ctx context.Context, namespace, name string) (map[string][]byte, error)

// Finder finds Secrets. It is safe for concurrent use.
type Finder struct {
	// Read is required.
	Read Read
	// Shared is the namespace whose Secrets every run may use, as far as a provider
	// looks for them there. Empty: none, and only the run's own are used.
	Shared string
}

// Want says which Secret is looked for.
type Want struct {
	// Namespace of the run.
	Namespace string
	// Name of the Secret.
	Name string
	// Own leaves the shared namespace out.
	Own bool
	// Keys that the Secret must have, with values. One that lacks them is passed over.
	Keys []string
}

// Values of a Secret by their keys, without the blanks and newlines around them.
type Values map[string]string

// Redactor knows the values of the keys named, beside what r knows.
func (v Values) Redactor(r analysis.Redactor, keys ...string) analysis.Redactor {
	secrets := make([]string, 0, len(keys))
	for _, key := range keys {
		secrets = append(secrets, v[key])
	}
	return r.With(secrets...)
}

// Find gives the first Secret that has all that is wanted. Errors: ErrUnusable when
// there is none, which doesn't tell what else is in the shared namespace; the reader's,
// when a Secret can't be read, so that no other credentials stand in for it.
func (f Finder) Find(ctx context.Context, w Want) (Values, error) {
	for _, namespace := range f.namespaces(w) {
		data, err := f.Read(ctx, namespace, w.Name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %q in namespace %q: %w", w.Name, namespace, err)
		}
		if values := usable(data, w.Keys); values != nil {
			return values, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no Secret %q with the keys %s in namespace %s",
		ErrUnusable, w.Name, strings.Join(w.Keys, ", "), strings.Join(f.namespaces(w), " or "))
}

func (f Finder) namespaces(w Want) []string {
	if w.Own || f.Shared == "" || f.Shared == w.Namespace {
		return []string{w.Namespace}
	}
	return []string{f.Shared, w.Namespace}
}

// usable are the values of a Secret; nil when one is missing or blank.
func usable(data map[string][]byte, keys []string) Values {
	values := Values{}
	for key, value := range data {
		values[key] = strings.TrimSpace(string(value))
	}
	for _, key := range keys {
		if values[key] == "" {
			return nil
		}
	}
	return values
}

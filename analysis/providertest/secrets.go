package providertest

import (
	"context"
	"fmt"
	"sync"

	"github.com/pushback-dev/pushback/analysis/providersecret"
)

// Secrets are those of a cluster. They are safe for concurrent use.
type Secrets struct {
	mu   sync.Mutex
	data map[string]map[string][]byte
}

// Put stores a Secret; one of the same name is replaced.
func (s *Secrets) Put(namespace, name string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(namespace, name, data)
}

// Add stores a Secret under a name of its own, which it returns.
func (s *Secrets) Add(namespace string, data map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("secret-%d", len(s.data))
	s.put(namespace, name, data)
	return name
}

func (s *Secrets) put(namespace, name string, data map[string]string) {
	raw := map[string][]byte{}
	for key, value := range data {
		raw[key] = []byte(value)
	}
	if s.data == nil {
		s.data = map[string]map[string][]byte{}
	}
	s.data[namespace+"/"+name] = raw
}

// Read is a providersecret.Read.
func (s *Secrets) Read(_ context.Context, namespace, name string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.data[namespace+"/"+name]
	if !ok {
		return nil, providersecret.ErrNotFound
	}
	return data, nil
}

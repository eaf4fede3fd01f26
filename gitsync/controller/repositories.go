package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
)

const (
	defaultBranch  = "main"
	defaultTimeout = time.Minute
	// maxFile is the largest file that is read.
	maxFile = 10 << 20
)

// sharedStore is the store of one branch of one repository, for all that may
// read it with the same credentials.
type sharedStore struct {
	*fetch.Store
	users int
	// pushing is held from the reading of a head to the end of the push onto it, so
	// that reverts of one branch queue up here rather than race at the server.
	pushing sync.Mutex
}

// repositories keeps a store for each branch and credentials, as long as a
// GitSync uses it.
type repositories struct {
	secrets    client.Reader
	allowFiles bool

	mu     sync.Mutex
	stores map[string]*sharedStore
	users  map[types.NamespacedName]string
}

func branchOf(sync *v1alpha1.GitSync) string {
	if sync.Spec.Ref != nil && sync.Spec.Ref.Branch != "" {
		return sync.Spec.Ref.Branch
	}
	return defaultBranch
}

func timeoutOf(sync *v1alpha1.GitSync) time.Duration {
	if sync.Spec.Timeout != nil {
		return sync.Spec.Timeout.Duration
	}
	return defaultTimeout
}

// errFileURL says that repositories on the controller's disk aren't allowed.
var errFileURL = &gitsync.ManifestError{Field: "spec.url", Problem: "file:// repositories are only read with the flag --allow-file-urls"}

// remote is the branch that a GitSync follows, with the credentials of a Secret
// of its namespace; nil is none. The Secret is read each time.
func (g *repositories) remote(ctx context.Context, sync *v1alpha1.GitSync, secret *meta.LocalObjectReference) (fetch.Remote, error) {
	remote := fetch.Remote{URL: sync.Spec.URL, Branch: branchOf(sync)}
	if strings.HasPrefix(sync.Spec.URL, "file:") && !g.allowFiles {
		return remote, errFileURL
	}
	if secret == nil {
		return remote, nil
	}
	key := types.NamespacedName{Namespace: sync.Namespace, Name: secret.Name}
	var found corev1.Secret
	if err := g.secrets.Get(ctx, key, &found); err != nil {
		if apierrors.IsNotFound(err) {
			return remote, &gitsync.Error{Class: gitsync.ErrAuth, Op: "read the Secret " + key.String(), Words: "there is no such Secret: create it, or correct secretRef"}
		}
		return remote, err
	}
	auth, err := fetch.AuthFromSecret(found.Data)
	if err != nil {
		return remote, err
	}
	remote.Auth = auth
	return remote, nil
}

// store is the store for a remote, noted as the one that user uses now. The one
// that it used before is dropped when nobody uses it any more.
func (g *repositories) store(user types.NamespacedName, remote fetch.Remote) *sharedStore {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := remote.Key()
	store := g.stores[key]
	if store == nil {
		store = &sharedStore{Store: fetch.NewStore(fetch.Limits{Blob: maxFile})}
		g.stores[key] = store
	}
	if before, known := g.users[user]; !known || before != key {
		g.leave(user)
		g.users[user] = key
		store.users++
	}
	return store
}

// writerOf is the user of a GitSync's store with the credentials to write: no
// object has such a name.
func writerOf(sync types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: sync.Namespace, Name: sync.Name + "/revert"}
}

// forget lets go of what a GitSync used.
func (g *repositories) forget(user types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leave(user)
}

// leave is called with mu held.
func (g *repositories) leave(user types.NamespacedName) {
	key, known := g.users[user]
	if !known {
		return
	}
	delete(g.users, user)
	store := g.stores[key]
	if store.users--; store.users == 0 {
		delete(g.stores, key)
	}
}

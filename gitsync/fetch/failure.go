package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/pushback-dev/pushback/gitsync"
)

// fail makes a *gitsync.Error of whatever an operation ended with; nil stays nil.
func (w *wire) fail(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*gitsync.Error)(nil); errors.As(err, &e) {
		return e
	}
	failure := &gitsync.Error{
		Class: w.classify(err), Op: op + " " + w.remote.String(),
		Words: gitsync.Scrub(err.Error(), w.remote.secrets()...),
	}
	// go-git and the ssh library report a closed connection when the context
	// ended; what ended it is the better word.
	if cause := ctx.Err(); cause != nil {
		failure.Class, failure.Cause, failure.Words = gitsync.ErrTransient, cause, cause.Error()
	}
	if failure.Class == gitsync.ErrTransient {
		if wait := w.recorder.wait(); wait > 0 {
			failure.Class, failure.RetryAfter = gitsync.ErrRateLimited, wait
		}
	}
	return failure
}

// errNotOurs is what a server says when a branch was rewritten between the
// reading of its head and the asking for it.
const errNotOurs = "not our ref"

func (w *wire) classify(err error) gitsync.Class {
	var (
		refused *refusedError
		class   gitsync.Class
	)
	switch {
	case errors.As(err, &refused):
		return refused.class
	case errors.As(err, &class):
		return class
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrInvalidAuthMethod):
		return gitsync.ErrAuth
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return gitsync.ErrRepositoryNotFound
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return gitsync.ErrEmptyRepository
	case errors.Is(err, errTooMuch):
		return gitsync.ErrUnusable
	case errors.Is(err, plumbing.ErrObjectNotFound), errors.Is(err, packfile.ErrReferenceDeltaNotFound),
		errors.Is(err, transport.ErrEmptyUploadPackRequest):
		return gitsync.ErrCorrupt
	case strings.Contains(err.Error(), errNotOurs):
		return gitsync.ErrRace
	case untrusted(err):
		return gitsync.ErrAuth
	}
	return gitsync.ErrTransient
}

// untrusted tells a failed proof of identity, theirs or ours, from a failed network.
func untrusted(err error) bool {
	var (
		hostKey     *HostKeyError
		authority   x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		certificate *tls.CertificateVerificationError
	)
	return errors.As(err, &hostKey) || errors.As(err, &authority) || errors.As(err, &name) ||
		errors.As(err, &invalid) || errors.As(err, &certificate) ||
		strings.Contains(err.Error(), "ssh: unable to authenticate") ||
		strings.Contains(err.Error(), "ssh: no common algorithm for host key")
}

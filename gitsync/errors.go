package gitsync

import (
	"errors"
	"strings"
	"time"
)

// Class says what kind of trouble a Git operation met, and so who has to act.
// It is an error, so that errors.Is(err, gitsync.ErrAuth) works on every error
// that the Git steps return.
type Class string

// Error names the class.
func (c Class) Error() string { return string(c) }

// The classes.
const (
	// ErrRace: the branch moved. Read the head again and decide anew, at once.
	ErrRace Class = "the branch moved"
	// ErrPolicy: the server refused the change by a rule, a hook or a protected
	// branch. Nothing but a change of settings or of the head helps.
	ErrPolicy Class = "refused by the server"
	// ErrSignature: the server wants signed commits. A kind of ErrPolicy.
	ErrSignature Class = "refused for want of a signature"
	// ErrAuth: missing, wrong or insufficient credentials, or a host key that
	// is not in known_hosts. Try again when the Secret changes.
	ErrAuth Class = "not authorised"
	// ErrRepositoryNotFound: no such repository, or no right to see it.
	ErrRepositoryNotFound Class = "repository not found"
	// ErrEmptyRepository: the repository has no commit yet.
	ErrEmptyRepository Class = "the repository is empty"
	// ErrBranchNotFound: the repository has commits, but not this branch.
	ErrBranchNotFound Class = "branch not found"
	// ErrPathNotFound: the commit has no such file or folder.
	ErrPathNotFound Class = "path not found"
	// ErrRateLimited: 429, or 503 with a Retry-After. Error.RetryAfter says when.
	ErrRateLimited Class = "rate limited"
	// ErrTransient: the network or the server failed. Try again with a back-off.
	ErrTransient Class = "git server unavailable"
	// ErrCorrupt: what the server sent can't be read, even from a fresh start.
	ErrCorrupt Class = "unreadable repository"
	// ErrUnusable: an input that this client refuses: an URL's scheme, a submodule,
	// a pointer of Git LFS, a file over the limit, a link that leads nowhere.
	ErrUnusable Class = "not usable"
)

// Error is a failed Git operation. Nothing in it holds a credential.
type Error struct {
	// Class says who has to act.
	Class Class
	// Op is what was tried, such as "push to main of https://host/r.git".
	Op string
	// Words are the server's own, or the local reason; at most MaxWords bytes.
	Words string
	// RetryAfter is what the server asked for, or 0.
	RetryAfter time.Duration
	// Cause is a context's error when that ended the operation, else nil.
	// Errors of the network are not kept: they may quote credentials.
	Cause error
}

// Error reads "op: class: words".
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{e.Op, string(e.Class), e.Words} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the class and the cause to errors.Is.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Cause}
}

// ClassOf returns the class of an error of the Git steps, and ErrTransient for
// an error that carries none.
func ClassOf(err error) Class {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Class
	}
	return ErrTransient
}

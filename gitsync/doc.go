// Package gitsync holds what the steps of a sync agree on: Revision, Object,
// the errors that name file, document and field, and the classes of what can
// go wrong between here and a Git server.
//
// It may not import a step (fetch, render, translate, apply, revert, forge), a
// client of Kubernetes, or go-git, so that every step may import it.
package gitsync

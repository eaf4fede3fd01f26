// Package translate turns the documents of other systems into Pushback's: Argo
// Rollouts' kinds, and the references of others to them. Files in Git stay as
// they are.
//
// PURE: it imports no client, no net, no os and no logger, and of Pushback only
// the API types and the root package gitsync.
package translate

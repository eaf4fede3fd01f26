// Package controller holds the controllers of GitSync and Revert: the one reads
// a folder of a repository and makes the cluster hold it, the other brings a
// rejected version out of Git again. They are the shell around the steps (fetch,
// render, translate, check, apply, revert) and hold no rule of their own that a
// step could hold.
//
// It may not import package reconciler, nor a concrete router.
package controller

// Package apply makes a cluster hold what a folder of Git declares: in stages,
// by server-side apply as pushback-gitsync, with the values that belong to a
// router carried over, and without a write when nothing would change. It prunes
// what left Git, and never what a version in use still names.
//
// It may import the API types, the root package gitsync, templatehash and the
// root package routers; no other step, no concrete router.
package apply

// Package render turns a folder of a commit's tree into Kubernetes objects:
// plain YAML and JSON as they are, a folder with a kustomization.yaml through the
// kustomize library. It reads nothing but the tree: no disk, no network, no
// plugin, no path outside the repository.
//
// It may import the root package gitsync and nothing else of Pushback: no client,
// no other step.
package render

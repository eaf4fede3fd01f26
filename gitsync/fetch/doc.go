// Package fetch speaks Git's wire protocol: it reads the head of a branch,
// keeps one commit's files in memory, and pushes a commit by compare-and-swap.
// There is no worktree, no ref of its own, and nothing on a disk.
//
// It uses go-git's plumbing and may not import its porcelain, a client of
// Kubernetes, or another step of gitsync.
package fetch

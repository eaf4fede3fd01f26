// Package lint finds what is legal and yet not what was meant: shares that pods can't
// give, metrics that can't stop anything, queries that look at every version, Services
// that select nothing. What can't be used at all is validation's to refuse.
//
// PURE: it works on objects as gitsync renders them, and does no I/O.
package lint

// Package revert turns a rejected version into the smallest edit of Git's files
// that brings the stable template back, proves the edit by rendering, and writes
// the message of the commit.
//
// PURE: files come in as bytes and go out as bytes, rendering is a function of
// the caller's, and the dates are the abort's. It imports no client, no net, no
// os and no logger, and none of the other steps.
package revert

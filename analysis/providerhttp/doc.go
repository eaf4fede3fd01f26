// Package providerhttp is the HTTP that all metric providers share: where it may
// connect to, whom credentials are sent to, how much of an answer is read, and what an
// error may tell.
//
// It imports no provider and decides nothing about a value.
package providerhttp

// Package awsauth says to AWS who asks, for the providers that ask it.
//
// Credentials are the controller's own, found as AWS's tools find them: environment,
// web identity of its ServiceAccount, Pod Identity, shared configuration files (where a
// metric's profile names a section), or the node's role. A metric's role is assumed with
// them. No metric holds a key.
//
// The addresses at which the controller's own credentials are got come from its
// environment, not from users, so that rules for users' addresses don't hold for them: a
// node serves them on link-local addresses. They hold for everything else, the assuming
// of roles included.
//
// It imports no provider and no Kubernetes client.
package awsauth

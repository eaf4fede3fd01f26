// Package providertest is the suite that every metric provider over HTTP runs: what
// it makes of values, and how it behaves towards servers that are slow, broken,
// huge, hostile or protected. The servers are real ones on a loopback address and
// speak the provider's protocol.
//
// It imports no provider and no Kubernetes client.
package providertest

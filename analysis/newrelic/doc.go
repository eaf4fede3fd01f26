// Package newrelic asks New Relic by NRQL over NerdGraph, its GraphQL API. It parses and
// returns values; no threshold, count or limit is known here.
//
// One row gives a map, several (FACET, TIMESERIES) give the list of their maps in the
// server's order, and none gives an empty list. The fields are named as NerdGraph names
// them, such as "average.duration", or by AS. Values keep their JSON types, so that null
// is nil. JSON has no NaN and no infinities.
//
// The account and the key come from the Secret that profile names, else from the Secret
// "newrelic", with Argo's keys personal-api-key, account-id, region and
// base-url-nerdgraph. A key base-url-rest is Argo's too, and not needed: NRQL is asked of
// NerdGraph alone.
//
// Plain HTTP stands in for New Relic's client, which takes a transport but no
// http.Client (its own follows redirects to any host), asks three times by itself, reads
// the environment, and keeps the server's words on a refused key to itself.
//
// It imports no Kubernetes client and no controller.
package newrelic

// Package datadog asks Datadog: a timeseries query of the API v1, or a scalar query or
// formula of the API v2. It parses and returns values; no threshold, count or limit is
// known here.
//
// One series or row gives a number, several give the list of their numbers in the order
// of their scopes or groups, and none gives nil. Of a series of v1 it is the last point
// with a value: Datadog leaves points without one out, or sends null for them. Null is
// nil, never 0. JSON has no NaN and no infinities.
//
// The keys come from the Secret that the metric names, else from the controller's
// environment (DD_API_KEY, DD_APP_KEY, DD_ADDRESS), else from the Secret "datadog", with
// Argo's keys api-key, app-key and address.
//
// Plain HTTP stands in for Datadog's client, which has code for all of Datadog (79 MB
// of it) around the two calls that are made here, and keeps null out of v1's points.
//
// It imports no Kubernetes client and no controller.
package datadog

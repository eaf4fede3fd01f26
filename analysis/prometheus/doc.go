// Package prometheus asks Prometheus-compatible APIs: an instant query, or a range
// query, by client_golang's API client. It parses and returns values; no threshold,
// count or limit is known here.
//
// It imports no Kubernetes client and no controller.
package prometheus

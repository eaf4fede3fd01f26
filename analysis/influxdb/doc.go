// Package influxdb asks InfluxDB (2 and later, or Cloud) by Flux, with InfluxData's own
// client over our transport. It parses and returns values; no threshold, count or limit
// is known here.
//
// The value is the list of the column _value of all tables, table by table in the
// server's order, as in Argo. Numbers are float64 whatever their width, times and binary
// values are texts (RFC 3339, base64), durations are texts such as 1m30s, and null is
// nil. NaN and the infinities are kept. No rows are an empty list, never an error. A
// table without a column _value is an error, and so is one that breaks off.
//
// The address, the token and the organisation come from the Secret that profile names,
// else from the Secret "influxdb", with Argo's keys address, authToken and org.
//
// It imports no Kubernetes client and no controller.
package influxdb

// Package graphite asks Graphite's render API. It parses and returns values; no
// threshold, count or limit is known here.
//
// The query is what stands behind "/render?" in a URL, such as
// "target=…&from=-5min", with blanks allowed outside quotes; what is percent-encoded is
// decoded. The value is the list of the numbers of all series that come back, series by
// series in the server's order, each from the oldest datapoint to the newest, so that
// result[0] is what Argo has there. Datapoints with null are left out, and no datapoints
// are an empty list, never an error. A query without "from" asks for the last 24 hours,
// as Graphite has it: result[0] is then a value of yesterday, which the metadata show.
//
// There is no authentication but a user and a password in the address. No client of
// Graphite is kept well; the one call is plain HTTP.
//
// It imports no Kubernetes client and no controller.
package graphite

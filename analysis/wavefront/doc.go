// Package wavefront asks Wavefront (VMware Aria Operations for Applications) for a chart
// of one moment. It parses and returns values; no threshold, count or limit is known here.
//
// One series gives a number, several give the list of their numbers in the order of
// their labels, hosts and tags, and none gives nil. Of a series it is the datapoint that
// is nearest to the time of the measurement; the metadata say how far off it is. A series
// of no datapoints is nil, never 0. JSON has no NaN and no infinities.
//
// The address is a host name, and a key of the Secret "wavefront-api-tokens" with the
// token as its value, as in Argo; without one nothing is asked.
//
// Wavefront's client takes no transport; the one call is plain HTTP.
//
// It imports no Kubernetes client and no controller.
package wavefront

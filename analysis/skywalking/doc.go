// Package skywalking asks Apache SkyWalking by GraphQL. It parses and returns values; no
// threshold, count or limit is known here.
//
// The value is the data of the answer as it stands: a map of the fields that the query
// asks for, with their JSON types, so that null is nil; data of null is nil. JSON has no
// NaN and no infinities. The query takes $duration: Duration!, the interval up to the
// measurement in steps of a minute, in UTC.
//
// There is no authentication but a user and a password in the address. No client of
// SkyWalking's queries is kept in Go; the one call is plain HTTP.
//
// It imports no Kubernetes client and no controller.
package skywalking

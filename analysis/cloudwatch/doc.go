// Package cloudwatch asks Amazon CloudWatch with GetMetricData, by AWS's SDK.
//
// The value is the list of the series that the queries return, in the order of the
// queries and then of labels, each an object with AWS's names as Argo's conditions know
// them: Id, Label, StatusCode, Values (numbers, the newest first), Timestamps (RFC 3339)
// and Messages (each with Code and Value). So result[0].Values[0] is the newest number of
// the first series. No series, or series without any value, are no data. A series that
// AWS refuses (Forbidden) or can't evaluate (InternalError) is an error, and so is one that
// no page completes (PartialData), or a message that the answer as a whole is not all of
// it. Messages about series are kept with the measurement.
//
// Credentials and region are the controller's own; see package awsauth. No metric holds
// either, so that a metric can only ask what the controller's identity may read.
//
// It imports no Kubernetes client and no controller.
package cloudwatch

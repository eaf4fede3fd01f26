// Package kayenta is the metric provider that asks Kayenta, Spinnaker's service for
// automated canary analysis. Kayenta compares, and gives a score from 0 to 100; the
// metric's own thresholds make the verdict of it: Successful from pass on, Inconclusive
// from marginal on, Failed below. The value is the score.
//
// The id of the canary config is looked up by its name, a judgement is asked for, and
// its end is waited for, which is looked for every 15 s. A judgement without a score, or
// with one that is no number (Kayenta's word for no data), is an Error, and never 0. So is
// one that takes longer than two hours. Within them an answer that fails to come while
// its end is looked for drops nothing. A controller that is stopped between asking for
// a judgement and storing its id asks again; the first one is of no account.
//
// There is no client of Kayenta for Go that is kept up, so this is HTTP. Kayenta has no
// credentials of its own: a user and a password in the address are sent as basic
// authentication, to that host alone.
//
// It imports neither the reconciler nor other providers.
package kayenta

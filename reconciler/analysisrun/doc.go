// Package analysisrun is the controller of AnalysisRuns: it asks providers for what
// is due, has the values judged and folded by package analysis, and writes the status.
// The times of all that is to come are in the status, so that a crash anywhere repeats a
// measurement and never skips one or counts it twice.
//
// It does not import reconciler/plan, routers, gitsync or any concrete provider.
package analysisrun

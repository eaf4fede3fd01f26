package analysis

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// stopTries marks the handle of a measurement that was to be stopped in vain, with how
	// often that was tried.
	stopTries = "pushback.dev/stop-tries"
	// maxStopTries is how often it is tried: with the waits between, 1 s and each twice
	// the one before, that is 15 s. The run's end waits for it, and so may an abort.
	maxStopTries = 5
)

// ErrUnstoppable is what a Terminator wraps where trying again would not help.
var ErrUnstoppable = errors.New("it can't be stopped, however often that is tried")

// Unstopped leaves a measurement under way that could not be stopped, so that it is
// tried again: what it began would run on with nobody to look at it. ok is false when
// that won't help or was tried often enough. The cause holds no secret.
func Unstopped(t Task, cause error) (out Measured, ok bool) {
	tries, err := strconv.Atoi(t.Prior.Metadata[stopTries])
	if err != nil {
		tries = 0 // this was the first
	}
	if tries++; tries >= maxStopTries || errors.Is(cause, ErrUnstoppable) {
		return Measured{}, false
	}
	handle := Handle{stopTries: strconv.Itoa(tries)}
	for key, value := range ProvidersOwn(t.Prior.Metadata) {
		handle[key] = value
	}
	return Measured{
		Task: t, Phase: v1alpha1.AnalysisPhaseRunning, Message: fmt.Sprintf("it could not be stopped yet: %v", cause),
		Handle: handle, After: time.Second << (tries - 1),
	}, true
}

// ProvidersOwn is a handle as the provider gave it; never nil.
func ProvidersOwn(h Handle) Handle {
	out := maps.Clone(h)
	if out == nil {
		out = Handle{}
	}
	delete(out, stopTries)
	return out
}

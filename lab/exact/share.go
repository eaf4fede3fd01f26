// Package exact holds the two counters that make the lab's servers
// deterministic: a share of requests that fail, and a split of requests over
// backends. Neither draws a random number, so that a test or a demo can state
// how many of its requests met what, and not only about how many.
//
// PURE: it imports no client, no net, no os and no logger.
package exact

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// resolution is how finely a rate is kept: nine decimals. A rate with more is
// rounded to the nearest billionth, which shows after a billion requests.
const resolution = 1_000_000_000

// ErrRate says that a rate is not a number from 0 to 1.
var ErrRate = errors.New("the rate must be a number from 0 to 1, for example 0.05 for 5%")

// Share picks a fixed share of the events it is asked about.
//
// Of any n consecutive events, exactly rate*n are picked whenever that is a
// whole number; otherwise it is one of the two whole numbers beside it. The
// picks are spread as evenly as they can be: 0.5 picks every second event.
// A Share is safe for concurrent use. The zero Share picks nothing.
type Share struct {
	mu          sync.Mutex
	rate        int64 // in units of 1/resolution, 0..resolution
	accumulator int64 // always 0..resolution-1
}

// NewShare returns a Share that picks the given rate, 0 to 1.
// Any other rate is an ErrRate.
func NewShare(rate float64) (*Share, error) {
	s := &Share{}
	if err := s.Set(rate); err != nil {
		return nil, err
	}
	return s, nil
}

// ParseRate reads a rate, 0 to 1, as a decimal number ("0.05") or as a
// percentage ("5%"). Anything else is an ErrRate.
func ParseRate(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", text, ErrRate)
	}
	if percent {
		rate /= 100
	}
	if _, err := billionths(rate); err != nil {
		return 0, fmt.Errorf("%q: %w", text, ErrRate)
	}
	return rate, nil
}

// Set changes the rate, 0 to 1; any other is an ErrRate and changes nothing.
// A new rate starts a new sequence. Setting the rate that already holds does not
// disturb the sequence, so that clients may repeat themselves.
func (s *Share) Set(rate float64) error {
	units, err := billionths(rate)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if units != s.rate {
		s.rate, s.accumulator = units, 0
	}
	return nil
}

// Rate is the rate in force, 0 to 1.
func (s *Share) Rate() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.rate) / resolution
}

// Next counts one event and reports whether it is one of the picked.
func (s *Share) Next() (picked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accumulator += s.rate
	if s.accumulator < resolution {
		return false
	}
	s.accumulator -= resolution
	return true
}

func billionths(rate float64) (int64, error) {
	if math.IsNaN(rate) || rate < 0 || rate > 1 {
		return 0, fmt.Errorf("%v: %w", rate, ErrRate)
	}
	return int64(math.Round(rate * resolution)), nil
}

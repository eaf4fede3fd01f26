package exact

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrWeights says that weights can't be used: one is negative, or their sum
// does not fit.
var ErrWeights = errors.New("weights must be 0 or more, and their sum at most 2^53")

const maxWeightSum = 1 << 53

// Nobody is what Split.Next answers when every weight is 0.
const Nobody = -1

// Split deals events to backends by weight, by the smooth weighted round robin
// that nginx introduced: each turn every backend gains its weight, the richest is
// chosen (the first of equals) and pays the sum of all weights.
//
// The sequence repeats after sum/gcd(weights) events, so any window of that
// length, or of a multiple of it, holds each backend exactly in its share: with
// weights that sum to 100, any 100 consecutive events hold exactly weight of
// each. A weight of 0 is never chosen. A Split is safe for concurrent use.
type Split struct {
	weights []int64
	sum     int64

	mu     sync.Mutex
	credit []int64
}

// NewSplit returns a Split over the weights, which are relative and need not sum
// to 100. A negative weight or a sum over 2^53 is an ErrWeights.
func NewSplit(weights []int64) (*Split, error) {
	s := &Split{weights: slices.Clone(weights), credit: make([]int64, len(weights))}
	for i, w := range weights {
		if w < 0 {
			return nil, fmt.Errorf("weight %d is %d: %w", i, w, ErrWeights)
		}
		if w > maxWeightSum-s.sum {
			return nil, fmt.Errorf("up to weight %d: %w", i, ErrWeights)
		}
		s.sum += w
	}
	return s, nil
}

// Weights are the weights the Split was made with, in order.
func (s *Split) Weights() []int64 { return slices.Clone(s.weights) }

// Next counts one event and returns the index of the backend it goes to, or
// Nobody when there is no backend with a weight above 0.
func (s *Split) Next() int {
	if s.sum == 0 {
		return Nobody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	best := Nobody
	for i, w := range s.weights {
		if w == 0 {
			continue
		}
		s.credit[i] += w
		if best == Nobody || s.credit[i] > s.credit[best] {
			best = i
		}
	}
	s.credit[best] -= s.sum
	return best
}

package exact

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestShareExactInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perThousand := rapid.IntRange(0, 1000).Draw(t, "perThousand")
		skip := rapid.IntRange(0, 2500).Draw(t, "skip")
		s, err := NewShare(float64(perThousand) / 1000)
		if err != nil {
			t.Fatal(err)
		}
		for range skip {
			s.Next()
		}
		picked := 0
		for range 1000 {
			if s.Next() {
				picked++
			}
		}
		if picked != perThousand {
			t.Fatalf("picked %d of 1000 after %d, want %d", picked, skip, perThousand)
		}
	})
}

func TestShareNeverStraysByAWholeEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0, 1).Draw(t, "rate")
		s, err := NewShare(rate)
		if err != nil {
			t.Fatal(err)
		}
		picked := 0
		for n := 1; n <= 300; n++ {
			if s.Next() {
				picked++
			}
			if want := rate * float64(n); math.Abs(float64(picked)-want) >= 1+1e-6 {
				t.Fatalf("rate %v: %d picked of %d", rate, picked, n)
			}
		}
	})
}

func TestShareKnownSequences(t *testing.T) {
	tests := map[string]struct {
		rate float64
		want string
	}{
		"none":              {0, "........"},
		"all":               {1, "xxxxxxxx"},
		"every second":      {0.5, ".x.x.x.x"},
		"every fourth":      {0.25, "...x...x"},
		"all but every 4th": {0.75, ".xxx.xxx"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := NewShare(tc.rate)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for range tc.want {
				if s.Next() {
					got += "x"
				} else {
					got += "."
				}
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestShareIsExactUnderConcurrency(t *testing.T) {
	s, err := NewShare(0.08)
	if err != nil {
		t.Fatal(err)
	}
	var picked atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				if s.Next() {
					picked.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if picked.Load() != 80 {
		t.Errorf("picked %d of 1000, want 80", picked.Load())
	}
}

func TestShareSetKeepsAndRestarts(t *testing.T) {
	s, err := NewShare(0.5)
	if err != nil {
		t.Fatal(err)
	}
	s.Next()
	if err := s.Set(0.5); err != nil {
		t.Fatal(err)
	}
	if !s.Next() {
		t.Error("setting the rate in force disturbed the sequence")
	}
	s.Next()
	if err := s.Set(2); !errors.Is(err, ErrRate) {
		t.Errorf("Set(2) = %v, want ErrRate", err)
	}
	if s.Rate() != 0.5 {
		t.Errorf("a refused rate changed the rate to %v", s.Rate())
	}
	if err := s.Set(0.25); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if s.Next() {
			t.Error("a new rate did not start a new sequence")
		}
	}
}

func TestParseRate(t *testing.T) {
	tests := map[string]struct {
		text string
		want float64
		err  error
	}{
		"decimal":    {text: "0.05", want: 0.05},
		"percent":    {text: "5%", want: 0.05},
		"one":        {text: "1", want: 1},
		"spaces":     {text: " 0.5 ", want: 0.5},
		"too much":   {text: "1.01", err: ErrRate},
		"whole":      {text: "50", err: ErrRate},
		"negative":   {text: "-0.1", err: ErrRate},
		"not number": {text: "NaN", err: ErrRate},
		"word":       {text: "half", err: ErrRate},
		"empty":      {text: "", err: ErrRate},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseRate(tc.text)
			if !errors.Is(err, tc.err) || got != tc.want {
				t.Errorf("got %v, %v; want %v, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestSplitExactInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Cuts of 0..100 make weights that sum to 100, zeros included.
		cuts := rapid.SliceOfN(rapid.IntRange(0, 100), 0, 4).Draw(t, "cuts")
		weights := weightsFromCuts(cuts)
		skip := rapid.IntRange(0, 250).Draw(t, "skip")
		s, err := NewSplit(weights)
		if err != nil {
			t.Fatal(err)
		}
		for range skip {
			s.Next()
		}
		got := make([]int64, len(weights))
		for range 100 {
			got[s.Next()]++
		}
		if diff := cmp.Diff(weights, got); diff != "" {
			t.Fatalf("a window after %d (-want +got):\n%s", skip, diff)
		}
	})
}

func weightsFromCuts(cuts []int) []int64 {
	left := 100
	var weights []int64
	for _, c := range cuts {
		w := min(c, left)
		left -= w
		weights = append(weights, int64(w))
	}
	return append(weights, int64(left))
}

func TestSplitIsSmooth(t *testing.T) {
	s, err := NewSplit([]int64{75, 25})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for range 8 {
		got = append(got, s.Next())
	}
	if diff := cmp.Diff([]int{0, 0, 1, 0, 0, 0, 1, 0}, got); diff != "" {
		t.Errorf("sequence (-want +got):\n%s", diff)
	}
}

func TestSplitRefusesAndIdles(t *testing.T) {
	for name, weights := range map[string][]int64{"none": nil, "zeros": {0, 0}} {
		s, err := NewSplit(weights)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Next(); got != Nobody {
			t.Errorf("%s: Next() = %d, want Nobody", name, got)
		}
	}
	for name, weights := range map[string][]int64{"negative": {1, -1}, "overflow": {1 << 53, 1}} {
		if _, err := NewSplit(weights); !errors.Is(err, ErrWeights) {
			t.Errorf("%s: %v, want ErrWeights", name, err)
		}
	}
}

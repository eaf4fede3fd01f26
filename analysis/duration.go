package analysis

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ParseDuration reads a number of seconds or a Go duration such as "5m"; "" is 0.
// A negative one is an error.
func ParseDuration(s v1alpha1.DurationString) (time.Duration, error) {
	text := strings.TrimSpace(string(s))
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if seconds, numErr := strconv.ParseInt(text, 10, 32); numErr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%q is neither a number of seconds nor a duration such as 30s or 5m", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is negative", text)
	}
	return d, nil
}

package node

import (
	"fmt"
	"time"
)

// Backoff says how long a container waits before it is started again.
type Backoff struct {
	Initial time.Duration // the second restart waits this long; the first doesn't wait
	Max     time.Duration // each further one twice as long, up to this
	Reset   time.Duration // a run of this length makes the next restart the first again
}

// DefaultBackoff is the kubelet's: 10 s, up to 5 minutes, forgotten after 10 minutes.
var DefaultBackoff = Backoff{Initial: 10 * time.Second, Max: 5 * time.Minute, Reset: 10 * time.Minute}

func (b Backoff) check() error {
	if b.Initial <= 0 || b.Max < b.Initial || b.Reset <= 0 {
		return fmt.Errorf("node: Options.Restart: want 0 < Initial <= Max and 0 < Reset, got %+v", b)
	}
	return nil
}

// delay is one container's place in a back-off.
type delay struct {
	current time.Duration // what the next failure waits
}

// afterRun says how long to wait after a run that took so long.
func (d *delay) afterRun(b Backoff, ran time.Duration) time.Duration {
	if ran >= b.Reset {
		d.current = 0
	}
	return d.advance(b)
}

// afterFailure says how long to wait after an attempt that started nothing, such as an image pull.
func (d *delay) afterFailure(b Backoff) time.Duration {
	d.current = max(d.current, b.Initial)
	return d.advance(b)
}

func (d *delay) advance(b Backoff) time.Duration {
	wait := d.current
	d.current = min(max(2*d.current, b.Initial), b.Max)
	return wait
}

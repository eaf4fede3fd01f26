package plansim

import "time"

// Fault is what becomes of one effect.
type Fault int

// The faults. After one the pass is over, and another one follows: at once after a
// conflict, and a second later after what counts as an error. A router that refuses
// or doesn't answer ends nothing: the next pass sees what it did.
const (
	NoFault Fault = iota
	// Conflict refuses it: what it follows from has changed.
	Conflict
	// Throttled refuses it for no reason of its own.
	Throttled
	// AnswerLost lets it happen, and tells nobody.
	AnswerLost
	// StopBefore ends the controller before it, and StopAfter after it. Another one
	// starts from what the API server has, Downtime later.
	StopBefore
	StopAfter
)

// String names the fault.
func (f Fault) String() string {
	return [...]string{"no fault", "conflict", "throttled", "answer lost", "stopped before", "stopped after"}[f]
}

// crash says that an effect is lost, with all that follow it in its pass.
func (c *Cluster) crash(effect string) bool {
	if c.ended != NoFault || c.Crash != nil && c.Crash(effect) {
		return true
	}
	if c.Fault == nil {
		return false
	}
	fault := c.Fault(effect)
	if traffic := effect == "split" || effect == "switch"; traffic && (fault == Throttled || fault == AnswerLost) {
		c.refused = fault == Throttled
		return c.refused
	}
	c.ended = fault
	return fault == Conflict || fault == Throttled || fault == StopBefore
}

// goesOn says that the pass goes on, for only the router has refused the effect that
// was asked about.
func (c *Cluster) goesOn() bool {
	refused := c.refused
	c.refused = false
	return refused
}

// pushLost says that gitsync pushed, and that nobody was told.
func (c *Cluster) pushLost() bool {
	return c.Crash != nil && c.Crash("pushed") || c.Fault != nil && c.Fault("pushed") != NoFault
}

// conflictDelay and backoff are how long after a pass that failed the next one is made.
const (
	conflictDelay = 200 * time.Millisecond
	backoff       = time.Second
)

// afterFault says when the next pass is made after one that a fault has ended.
func (c *Cluster) afterFault() {
	switch c.ended {
	case Conflict:
		c.wakeAt = c.Now.Add(conflictDelay)
	case Throttled, AnswerLost:
		c.wakeAt = c.Now.Add(backoff)
	case StopBefore, StopAfter:
		c.downUntil = c.Now.Add(c.Downtime)
		c.wakeAt = c.downUntil
		for _, kind := range kinds { // caches are filled anew
			c.seenAt[kind] = len(c.history[kind]) - 1
		}
	}
	c.ended = NoFault
}

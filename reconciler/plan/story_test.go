package plan_test

import (
	"errors"
	"fmt"

	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// story is a whole rollout as data: what there is at the start, and what people,
// Git and the cluster do to it. One that is added to stories is told as a transcript
// and tried in other orders, with crashes at every effect and with every fault.
type story struct {
	start  func() *plansim.Cluster
	script []act
}

// act does something, waits until something is so, and lets time pass after that.
type act struct {
	do func(*plansim.Cluster)
	// until is reached within so many seconds, or the story went wrong; nil for no wait.
	until  func(*plansim.Cluster) bool
	within int
	what   string
	// rest is in seconds.
	rest int
	// first is true for bringing up the first version.
	first bool
}

// does changes the world by hand.
func does(do func(*plansim.Cluster)) act { return act{do: do} }

// commits lets Git declare a version, and gitsync apply it.
func commits(hash string) act { return does(func(c *plansim.Cluster) { push(c, hash) }) }

// sends lets a person use a verb on what the status shows then.
func sends(verb, token string) act {
	return does(func(c *plansim.Cluster) { c.Send(verb, token) })
}

// scales lets a scaler or a person set spec.replicas.
func scales(replicas int32) act { return does(func(c *plansim.Cluster) { c.Scale(replicas) }) }

// pods makes the pods of a version behave otherwise from now on.
func pods(hash string, b plansim.Behaviour) act {
	return does(func(c *plansim.Cluster) { c.Behaviours[hash] = b })
}

// reaches waits until something is so.
func reaches(seconds int, what string, until func(*plansim.Cluster) bool) act {
	return act{until: until, within: seconds, what: what}
}

// rests lets time pass.
func rests(seconds int) act { return act{rest: seconds} }

// stable makes a version the first one, and waits past all that follows from it.
func stable(hash string) act {
	return act{
		do:    func(c *plansim.Cluster) { push(c, hash) },
		until: healthyOn(hash), within: 60, what: "a healthy first version",
		rest: 60, first: true,
	}
}

// player plays a story, second by second. A copy of it goes on from where it is.
type player struct {
	*plansim.Cluster
	story
	// patience multiplies how long is waited at most.
	patience int

	at    int // the act
	stage int // of the act: what it does, its wait, its rest
	left  int // seconds of the stage
	// quiet is for how many seconds nothing was written after the last act.
	quiet, writes, after int
}

func starts(s story) *player { return &player{Cluster: s.start(), story: s, patience: 1} }

// fork is a player of its own that goes on from here.
func (p *player) fork() *player {
	out := *p
	out.Cluster = p.Clone()
	return &out
}

// told says that all acts are over.
func (p *player) told() bool { return p.at >= len(p.script) }

// second plays one second.
func (p *player) second() error {
	for !p.told() {
		a := p.script[p.at]
		switch p.stage {
		case 0:
			if a.do != nil {
				a.do(p.Cluster)
			}
			p.stage, p.left = 1, a.within*p.patience
			if a.until == nil {
				p.stage, p.left = 2, a.rest
			}
		case 1:
			if p.left == 0 {
				return fmt.Errorf("did not reach %s within %d s; phase %s, message %q", a.what, a.within*p.patience, p.Status.Phase, p.Status.Message)
			}
			p.left--
			if p.Second(a.until) {
				p.stage, p.left = 2, a.rest
			}
			return p.lawful()
		case 2:
			if p.left > 0 {
				p.left--
				p.Second(nil)
				return p.lawful()
			}
			p.at, p.stage = p.at+1, 0
		}
	}
	p.Second(nil)
	if p.after, p.quiet = p.after+1, p.quiet+1; p.Writes != p.writes {
		p.quiet, p.writes = 0, p.Writes
	}
	return p.lawful()
}

func (p *player) lawful() error {
	if len(p.Violations) > 0 {
		return fmt.Errorf("broke %v", p.Violations)
	}
	return nil
}

// tell plays to the end of a number of acts.
func (p *player) tell(acts int) error {
	for p.at < acts {
		if p.stage == 2 && p.left == 0 { // the next act is left to whoever goes on
			p.at, p.stage = p.at+1, 0
			continue
		}
		if err := p.second(); err != nil {
			return err
		}
	}
	return nil
}

var errRestless = errors.New("writes go on and on")

// settle plays to the end, and until nothing is written any more.
func (p *player) settle() error {
	for !p.settled() {
		if p.after > 900 {
			return errRestless
		}
		if err := p.second(); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) settled() bool { return p.told() && p.quiet >= 100 }

package plan_test

import (
	"fmt"
	"testing"

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
		rest: 60,
	}
}

// play carries a script out. Patience multiplies how long is waited at most.
func play(c *plansim.Cluster, script []act, patience int) error {
	for _, a := range script {
		if a.do != nil {
			a.do(c)
		}
		if a.until != nil && !c.Run(a.within*patience, a.until) {
			return fmt.Errorf("did not reach %s within %d s; phase %s, message %q", a.what, a.within*patience, c.Status.Phase, c.Status.Message)
		}
		c.Run(a.rest, nil)
		if len(c.Violations) > 0 {
			return fmt.Errorf("broke %v", c.Violations)
		}
	}
	return nil
}

// told plays a story as it is written.
func told(t *testing.T, s story) *plansim.Cluster {
	t.Helper()
	c := s.start()
	if err := play(c, s.script, 1); err != nil {
		t.Fatalf("%v\n%s", err, transcript(c))
	}
	return c
}

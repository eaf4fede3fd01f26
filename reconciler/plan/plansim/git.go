package plansim

import (
	"fmt"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// commit is one on the branch: what the Rollout renders to there.
type commit struct {
	plan.Source
	// reverts names the Revert that made it; empty for people's.
	reverts string
	at      time.Time
}

// working is what gitsync knows of a Revert that it works off.
type working struct {
	due    time.Time
	target string // what was stable when it was asked for
	// composed is true when an edit of the commit at index on is ready to be pushed.
	composed bool
	on       int
}

// Commit makes Git declare a template, and gitsync apply it at once. The source
// is noted anew also when the template is the same, as when another GitSync has
// taken the Rollout over.
func (c *Cluster) Commit(hash, revision, subject string) {
	c.Push(hash, revision, subject)
	c.apply(len(c.branch)-1, true)
}

// Push adds a commit to the branch, which gitsync sees SyncAfter later. The
// hashes are those of its Pushback-Retry trailers.
func (c *Cluster) Push(hash, revision, subject string, retry ...string) {
	c.note("git", "commit %s declares %s", revision, hash)
	c.branch = append(c.branch, commit{at: c.Now, Source: plan.Source{
		Hash: hash, Revision: revision, Subject: subject, RetryHashes: retry, GitSyncNamespace: "flux", GitSyncName: "apps",
	}})
}

// Head is the template that the head of the branch declares.
func (c *Cluster) Head() string {
	if len(c.branch) == 0 {
		return ""
	}
	return c.branch[len(c.branch)-1].Hash
}

// Synced says that the cluster has what the head declares.
func (c *Cluster) Synced() bool { return len(c.branch) == 0 || c.applied == len(c.branch)-1 }

// tickSync is gitsync's poll: it applies the head, whatever came before it, and
// notes it as the source when the template or what a trailer asks for is new.
func (c *Cluster) tickSync() {
	head := len(c.branch) - 1
	if head < 0 || c.applied == head || c.SyncFails || c.Now.Before(c.branch[head].at.Add(c.SyncAfter)) {
		return
	}
	c.apply(head, false)
}

func (c *Cluster) apply(head int, anew bool) {
	c.applied = head
	source := c.branch[head].Source
	if !anew && c.Source != nil && c.Source.Hash == source.Hash && len(source.RetryHashes) == 0 {
		if c.Template.Hash != source.Hash {
			c.Template = plan.Template{Hash: source.Hash} // the live one was edited
			c.generation++
			c.version++
		}
		return
	}
	if c.Template.Hash != source.Hash {
		c.Template = plan.Template{Hash: source.Hash}
		c.generation++
	}
	c.Source = &source
	c.version++
}

// tickReverts is gitsync working off the Reverts: it reads the head, composes an
// edit of it, and pushes that a while later if the head is still the same.
func (c *Cluster) tickReverts() {
	moved := false
	for i := range c.reverts {
		moved = c.tickRevert(&c.reverts[i]) || moved
	}
	if moved {
		c.changed("reverts")
	}
}

// tickRevert is gitsync working off one Revert. It says whether that moved.
func (c *Cluster) tickRevert(r *plan.Revert) bool {
	w := c.working[r.Name]
	if c.RevertAfter == 0 || r.Phase.Final() || c.Now.Before(w.due) {
		return false
	}
	before := *r
	c.workOff(r, w)
	return before != *r
}

func (c *Cluster) workOff(r *plan.Revert, w *working) {
	head := len(c.branch) - 1
	switch {
	case r.Phase == v1alpha1.RevertPushed:
		r.Phase = v1alpha1.RevertObserved // what came after it is the Rollout's affair
	case c.mine(r.Name):
		r.Phase = v1alpha1.RevertObserved // pushed, and then the controller crashed
	case c.Head() == w.target && w.target != "":
		r.Phase = v1alpha1.RevertAlreadyReverted
	case c.Head() != r.Hash:
		r.Phase = v1alpha1.RevertSuperseded
	case w.target == "":
		r.Phase = v1alpha1.RevertNoTarget
	case c.RefusePushes:
		r.Phase, r.Reason, w.composed = v1alpha1.RevertBlocked, v1alpha1.RevertReasonAuth, false
	case !w.composed || w.on != head:
		if w.composed {
			c.note("gitsync", "lost the race for the branch with %s", r.Name)
		}
		w.composed, w.on, w.due = true, head, c.Now.Add(c.PushAfter)
		if c.PushAfter == 0 {
			c.pushRevert(r, w)
		}
	default:
		c.pushRevert(r, w)
	}
}

func (c *Cluster) pushRevert(r *plan.Revert, w *working) {
	c.checkPush(r, w)
	count := 0
	for _, made := range c.branch {
		if made.reverts != "" {
			count++
		}
	}
	r.Reason, r.Commit = "", fmt.Sprintf("revert-%d", count+1)
	c.note("gitsync", "pushes %s", r.Commit)
	c.Push(w.target, fmt.Sprintf("main@sha1:revert%d", count+1), "Revert web")
	c.branch[len(c.branch)-1].reverts = r.Name
	if c.pushLost() {
		return // it is there, and nobody was told
	}
	r.Phase, w.due = v1alpha1.RevertPushed, c.Now.Add(c.RevertAfter)
}

// mine says that the branch has the commit that a Revert made.
func (c *Cluster) mine(name string) bool {
	return slices.ContainsFunc(c.branch, func(made commit) bool { return made.reverts == name })
}

// checkPush: law 12, of the whole history.
func (c *Cluster) checkPush(r *plan.Revert, w *working) {
	if c.mine(r.Name) {
		c.violated("12", "%s is reverted twice", r.Name)
	}
	if c.Head() != r.Hash || w.target == "" || w.target == r.Hash {
		c.violated("12", "%s turns %s into %s, and the head declares %s", r.Name, r.Hash, w.target, c.Head())
	}
}

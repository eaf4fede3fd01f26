package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// verb is an annotation that asks the controller for something.
type verb struct {
	annotation string
	// next says what happens now, from the Rollout that the controller answered with.
	next func(*v1alpha1.Rollout) string
	// also are further annotations, given the token.
	also func(token string) map[string]string
	// target is the template hash that the verb is meant for. Nil: the current version's.
	target func(*v1alpha1.Rollout) (string, error)
}

// done is what a verb did, for programs.
type done struct {
	Namespace string `json:"namespace"`
	Rollout   string `json:"rollout"`
	Verb      string `json:"verb"`
	// Next says what happens now.
	Next  string                `json:"next"`
	Phase v1alpha1.RolloutPhase `json:"phase"`
	Step  string                `json:"step,omitempty"`
}

// say prints what a verb did.
func (d done) say(out io.Writer, output outputFlag) error {
	text := fmt.Sprintf("%s: %s. %s\n", d.Rollout, d.Verb, d.Next)
	switch {
	case output.structured():
		var err error
		if text, err = output.encode(d); err != nil {
			return err
		}
	case output.name():
		text = rolloutName(d.Rollout) + "\n"
	}
	return written(io.WriteString(out, text))
}

// runVerb writes the annotation and waits for the controller's answer.
func runVerb(ctx context.Context, out io.Writer, c client.Client, key types.NamespacedName, v verb, timeout time.Duration, output outputFlag) error {
	rollout, err := readRollout(ctx, c, key)
	if err != nil {
		return err
	}
	hash, err := v.hash(rollout)
	if err != nil {
		return err
	}
	token := newToken()
	if err := writeVerb(ctx, c, rollout, v, hash, token); err != nil {
		return err
	}
	name := strings.TrimPrefix(v.annotation, v1alpha1.GroupVersion.Group+"/")
	answered, err := awaitVerb(ctx, c, key, name, token, timeout)
	if err != nil {
		return err
	}
	if refused := answered.Status.Verbs[name].Refused; refused != "" {
		return fmt.Errorf("%s was refused: %s", name, refused)
	}
	return done{Namespace: key.Namespace, Rollout: key.Name, Verb: name, Next: v.next(answered),
		Phase: answered.Status.Phase, Step: answered.Status.Step}.say(out, output)
}

// hash is the template that the verb is meant for.
func (v verb) hash(rollout *v1alpha1.Rollout) (string, error) {
	if v.target != nil {
		return v.target(rollout)
	}
	if rollout.Status.CurrentPodHash == "" {
		return "", fmt.Errorf("%s has no version yet: %s", rollout.Name, statusText(rollout))
	}
	return rollout.Status.CurrentPodHash, nil
}

// writeVerb aims the verb at a version and at the step that was read, so that it
// can't hit a later one.
func writeVerb(ctx context.Context, c client.Client, rollout *v1alpha1.Rollout, v verb, hash, token string) error {
	step := int32(0)
	if rollout.Status.CurrentStepIndex != nil {
		step = *rollout.Status.CurrentStepIndex
	}
	next := rollout.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[v.annotation] = fmt.Sprintf("%s/%d/%s", hash, step, token)
	if v.also != nil {
		for annotation, value := range v.also(token) {
			next.Annotations[annotation] = value
		}
	}
	patch := client.MergeFrom(rollout)
	if err := c.Patch(ctx, next, patch, client.FieldOwner("pushback-cli")); err != nil {
		return fmt.Errorf("writing the annotation %s: %w", v.annotation, err)
	}
	return nil
}

func awaitVerb(ctx context.Context, c client.Reader, key types.NamespacedName, name, token string, timeout time.Duration) (*v1alpha1.Rollout, error) {
	var answered *v1alpha1.Rollout
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		rollout, err := readRollout(ctx, c, key)
		if err != nil {
			return false, err
		}
		answered = rollout
		return rollout.Status.Verbs[name].Token == token, nil
	})
	if wait.Interrupted(err) {
		return nil, fmt.Errorf("the controller did not answer within %s: is it running, and is it the leader? 'kubectl -n pushback-system get pods' tells", timeout)
	}
	return answered, err
}

func newToken() string {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // never fails, says its documentation
	return hex.EncodeToString(raw[:])
}

// addVerb adds a command that runs a verb on one Rollout.
func addVerb(use, short, long, example string, pick func() verb) *cobra.Command {
	var timeout time.Duration
	var output outputFlag
	cmd := &cobra.Command{Use: use + " ROLLOUT", Short: short, Long: long, Example: example, Args: oneRollout(1)}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = reach.complete
	cmd.Flags().DurationVar(&timeout, "wait", 15*time.Second, "how long to wait for the controller's answer")
	output.register(cmd, formatJSON, formatYAML, formatName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		key := types.NamespacedName{Namespace: namespace, Name: args[0]}
		return runVerb(cmd.Context(), cmd.OutOrStdout(), c, key, pick(), timeout, output)
	}
	return cmd
}

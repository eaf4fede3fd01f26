package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newHistoryCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "history ROLLOUT",
		Short: "List the revisions of a rollout with their commits",
		Long: "Lists the versions that a Rollout has had, newest first, with the commit that declared each and what became of it:\n" +
			"stable, current (on its way), rejected, or old. -o wide adds the whole revision, the pods, whether its files are kept for going\n" +
			"back to it (see 'undo'), and why it was rejected.",
		Example: "  pushback history shop\n  pushback history shop -o wide",
		Args:    oneRollout(1),
	}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = reach.complete
	output.registerAll(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		key := types.NamespacedName{Namespace: namespace, Name: args[0]}
		return show(cmd.Context(), cmd.OutOrStdout(), output, false, readHistory(c, key, output))
	}
	return cmd
}

// pastView is one revision of a Rollout.
type pastView struct {
	// Revision is the counter on its ReplicaSet; 0 when that is gone.
	Revision int64  `json:"revision,omitempty"`
	Template string `json:"template"`
	// Status is stable, current, rejected or old.
	Status      string `json:"status"`
	Commit      string `json:"commit,omitempty"`
	GitRevision string `json:"gitRevision,omitempty"`
	Subject     string `json:"subject,omitempty"`
	Pods        int32  `json:"pods"`
	// Kept is true when its files are kept, so that undo can bring it back.
	Kept bool `json:"kept"`
	// Rejected says why it was taken back.
	Rejected string    `json:"rejected,omitempty"`
	Created  time.Time `json:"created,omitzero"`
}

// statusOld is a revision that is neither stable nor on its way nor rejected.
const statusOld = "old"

func readHistory(c client.Reader, key types.NamespacedName, output outputFlag) reading {
	return func(ctx context.Context) (drawing, error) {
		rollout, all, err := readWhole(ctx, c, key)
		if err != nil {
			return nil, err
		}
		past := historyOf(rollout, all)
		return func(s style) (string, error) {
			switch {
			case output.structured():
				return output.encode(past)
			case output.name():
				return rolloutName(key.Name) + "\n", nil
			case len(past) == 0:
				return fmt.Sprintf("%s has no revision yet: %s\n", key.Name, statusText(rollout)), nil
			}
			return s.fit(renderHistory(past, s)), nil
		}, nil
	}
}

// historyOf are the revisions of a Rollout, newest first: those that have a
// ReplicaSet, then those of which only the files are kept.
func historyOf(rollout *v1alpha1.Rollout, all belongings) []pastView {
	byHash := map[string]pastView{}
	for i := range all.sources {
		if source := &all.sources[i]; keptFor(source, rollout) {
			byHash[source.Labels[v1alpha1.TemplateHashLabel]] = pastView{
				Kept: storedSource(source).Files != "", Created: source.CreationTimestamp.Time}
		}
	}
	for i := range all.sets {
		set := &all.sets[i]
		if !metav1.IsControlledBy(set, rollout) {
			continue
		}
		hash := set.Labels[v1alpha1.TemplateHashLabel]
		past := byHash[hash]
		past.Revision, _ = strconv.ParseInt(set.Annotations[v1alpha1.RevisionAnnotation], 10, 64) // absent: 0
		past.Pods, past.Created = set.Status.Replicas, set.CreationTimestamp.Time
		byHash[hash] = past
	}
	commits := commitsOf(rollout, all.sources)
	out := make([]pastView, 0, len(byHash))
	for hash, past := range byHash {
		commit := commits[hash]
		past.Template, past.Commit, past.GitRevision, past.Subject = hash, commit.ShortCommit, commit.Revision, commit.Subject
		past.Status, past.Rejected = becameOf(rollout, hash)
		out = append(out, past)
	}
	slices.SortFunc(out, func(a, b pastView) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), b.Created.Compare(a.Created), cmp.Compare(a.Template, b.Template))
	})
	return out
}

// becameOf says what a version is to its Rollout, and why it was rejected.
func becameOf(rollout *v1alpha1.Rollout, hash string) (status, why string) {
	if hash == rollout.Status.StableRS {
		return v1alpha1.RoleStable, ""
	}
	for _, rejected := range rollout.Status.Rejected {
		if rejected.Hash == hash && !rejected.Cleared {
			return v1alpha1.RoleRejected, joined(string(rejected.Reason), rejected.Message)
		}
	}
	if hash == rollout.Status.CurrentPodHash {
		return "current", ""
	}
	return statusOld, ""
}

func renderHistory(past []pastView, s style) string {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	head := []string{"REVISION", "TEMPLATE", "STATUS", "COMMIT", "AGE"}
	if s.wide {
		head = append(head, "PODS", "KEPT", "REJECTED")
	}
	fmt.Fprintln(table, strings.Join(append(head, "SUBJECT"), "\t"))
	for _, p := range past {
		revision, commit := "-", orDash(p.Commit)
		if p.Revision > 0 {
			revision = strconv.FormatInt(p.Revision, 10)
		}
		if s.wide {
			commit = orDash(p.GitRevision)
		}
		cells := []string{revision, p.Template, p.Status, commit, s.age(p.Created)}
		if s.wide {
			kept := "no"
			if p.Kept {
				kept = "yes"
			}
			cells = append(cells, fmt.Sprint(p.Pods), kept, orDash(p.Rejected))
		}
		fmt.Fprintln(table, strings.Join(append(cells, orDash(p.Subject)), "\t"))
	}
	_ = table.Flush() // a bytes.Buffer takes everything
	return out.String()
}

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestHistoryTellsWhatBecameOfEachRevision(t *testing.T) {
	rollout := shop(inCanary)
	rollout.Status.Rejected = []v1alpha1.RejectedVersion{
		{Hash: "cccccccccc", Reason: v1alpha1.AbortFailed, Message: "errors was 0.5"},
		{Hash: "dddddddddd", Reason: v1alpha1.AbortFailed, Cleared: true},
	}
	rollout.Status.Git.Current = &v1alpha1.GitVersion{Hash: "bbbbbbbbbb", Revision: "main@sha1:4444444444", ShortCommit: "4444444", Subject: "Release v4"}
	current := replicaSet(rollout, "bbbbbbbbbb", "12", 1)
	current.CreationTimestamp = metav1.NewTime(busyNow.Add(-3 * time.Minute))
	other := shop(inCanary)
	other.Name, other.UID = "other", "other"
	c := cluster(t, rollout, other, current,
		replicaSet(rollout, "aaaaaaaaaa", "9", 4), replicaSet(rollout, "cccccccccc", "11", 0), replicaSet(rollout, "dddddddddd", "10", 0), replicaSet(other, "ffffffffff", "99", 9),
		kept(rollout, "aaaaaaaaaa", "main@sha1:1111111111111111111111111111111111111111", "Release v1"),
		kept(rollout, "eeeeeeeeee", "main@sha1:0000000000000000000000000000000000000000", ""),
		kept(other, "gggggggggg", "main@sha1:9999999999999999999999999999999999999999", "not ours"))
	tests := map[string]struct {
		format string
		want   string
	}{
		"text": {want: `REVISION  TEMPLATE    STATUS    COMMIT   AGE  SUBJECT
12        bbbbbbbbbb  current   4444444  3m   Release v4
11        cccccccccc  rejected  -        -    -
10        dddddddddd  old       -        -    -
9         aaaaaaaaaa  stable    1111111  -    Release v1
-         eeeeeeeeee  old       0000000  -    -
`},
		"wide": {format: formatWide, want: `REVISION  TEMPLATE    STATUS    COMMIT                                              AGE  PODS  KEPT  REJECTED                SUBJECT
12        bbbbbbbbbb  current   main@sha1:4444444444                                3m   1     no    -                       Release v4
11        cccccccccc  rejected  -                                                   -    0     no    Failed  errors was 0.5  -
10        dddddddddd  old       -                                                   -    0     no    -                       -
9         aaaaaaaaaa  stable    main@sha1:1111111111111111111111111111111111111111  -    4     yes   -                       Release v1
-         eeeeeeeeee  old       main@sha1:0000000000000000000000000000000000000000  -    0     yes   -                       -
`},
		"name": {format: formatName, want: "rollout.pushback.dev/shop\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := drawn(t, readHistory(c, shopKey, outputFlag{format: tt.format}), style{now: busyNow, wide: tt.format == formatWide})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestHistoryOfNothing(t *testing.T) {
	c := cluster(t, shop(func(*v1alpha1.Rollout) {}))
	got, err := drawn(t, readHistory(c, shopKey, outputFlag{}), style{})
	if want := "shop has no revision yet: the controller has not looked at it yet\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

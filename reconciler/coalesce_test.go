package reconciler

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// Of all fields these are only looked at; each new one is written at once.
func TestWhatIsOnlyLookedAt(t *testing.T) {
	want := []string{"AvailableReplicas", "Message", "ReadyReplicas", "Replicas", "UpdatedReplicas"}
	var got []string
	kind := reflect.TypeFor[v1alpha1.RolloutStatus]()
	for i := range kind.NumField() {
		var other v1alpha1.RolloutStatus
		if !changeValue(reflect.ValueOf(&other).Elem().Field(i)) {
			t.Fatalf("%s was not changed", kind.Field(i).Name)
		}
		if looksOnly(v1alpha1.RolloutStatus{}, other) {
			got = append(got, kind.Field(i).Name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	conditions := func(c metav1.Condition) v1alpha1.RolloutStatus {
		return v1alpha1.RolloutStatus{Conditions: []metav1.Condition{c}}
	}
	before := metav1.Condition{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "1 of 4", ObservedGeneration: 1}
	text, reason, generation := before, before, before
	text.Message, reason.Reason, generation.ObservedGeneration = "2 of 4", "Paused", 2
	if !looksOnly(conditions(before), conditions(text)) || looksOnly(conditions(before), conditions(reason)) || looksOnly(conditions(before), conditions(generation)) {
		t.Error("of a condition its text is looked at, and nothing else")
	}
}

// changeValue gives a zero value another one; false if it knows none.
func changeValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && changeValue(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return false
	}
	return true
}

// Counts wait for a second to pass, are written then, and nothing is after that.
func TestCountsAreWrittenOnceASecond(t *testing.T) {
	l := newLab(t)
	l.routed(setWeight(50), untilPromoted)
	l.byHand()
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			return err
		}
		if !healthy(l.rollout()) || l.rollout().Status.AvailableReplicas == 0 {
			return errOr(nil, "not healthy yet")
		}
		return nil
	})
	now := l.reconciler.Now().Add(time.Minute) // later than any write
	l.reconciler.Now = func() time.Time { return now }
	key := client.ObjectKeyFromObject(l.rollout())
	settled := func() string {
		t.Helper()
		before := ""
		clustertest.Eventually(l, patience, func() error {
			if _, err := l.pass(); err != nil {
				return err
			}
			if is := l.rollout().ResourceVersion; is != before {
				before = is
				return errOr(nil, "still written to")
			}
			return nil
		})
		return before
	}
	settled()
	l.reconciler.writes.note(key, now)
	live := l.rollout()
	available := live.Status.AvailableReplicas
	live.Status.AvailableReplicas = available + 5 // as if it were behind
	if err := l.client.Status().Update(l.Context(), live); err != nil {
		t.Fatal(err)
	}
	result, err := l.pass()
	if err != nil {
		t.Fatal(err)
	}
	if written := l.rollout().ResourceVersion != live.ResourceVersion; written || result.RequeueAfter != looksEvery {
		t.Errorf("within the second: written %t, next pass in %s, want it put off to %s", written, result.RequeueAfter, looksEvery)
	}
	now = now.Add(looksEvery)
	if _, err := l.pass(); err != nil {
		t.Fatal(err)
	}
	if got := l.rollout().Status.AvailableReplicas; got != available {
		t.Errorf("after the second %d pods are said to be available, want %d", got, available)
	}
	if last := settled(); last != l.rollout().ResourceVersion {
		t.Error("a Rollout at rest is written to")
	}
}

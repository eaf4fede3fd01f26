package gitsync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pushback-dev/pushback/gitsync"
)

func TestRevision(t *testing.T) {
	hash := strings.Repeat("0a", 20)
	for want, revision := range map[string]gitsync.Revision{
		"": {}, "main@sha1:" + hash: {Branch: "main", Hash: hash}, "team/a@b@sha1:" + hash: {Branch: "team/a@b", Hash: hash},
	} {
		if got := revision.String(); got != want || revision.IsZero() != (want == "") || gitsync.HashOf(got) != revision.Hash {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for text, want := range map[string]bool{hash: true, strings.ToUpper(hash): false, hash[1:]: false, "": false, hash + "0": false} {
		if gitsync.IsHash(text) != want {
			t.Errorf("IsHash(%q) is %t", text, !want)
		}
	}
}

func TestError_HasClassAndCause(t *testing.T) {
	err := error(&gitsync.Error{Class: gitsync.ErrAuth, Op: "push", Words: "no", Cause: context.Canceled})
	if !errors.Is(err, gitsync.ErrAuth) || errors.Is(err, gitsync.ErrRace) || !errors.Is(err, context.Canceled) {
		t.Error("identity is lost")
	}
	if err.Error() != "push: not authorised: no" || gitsync.ClassOf(errors.New("x")) != gitsync.ErrTransient {
		t.Error(err)
	}
}

func TestC59_Scrub(t *testing.T) {
	const secret = "p^s/s w+1"
	text := "a p^s/s w+1 b p%5Es%2Fs+w%2B1 c p%5Es%2Fs%20w+1 d cF5zL3MgdysxPw== e https://u:x@host/p?token=q#f g\x1b[31m\nh"
	got := gitsync.Scrub(text+strings.Repeat("é", 600), secret, secret+"?")
	for _, left := range []string{"p^s", "p%5E", "cF5z", "u:x", "token", "\x1b", "\n"} {
		if strings.Contains(got, left) {
			t.Errorf("%q is left in %q", left, got)
		}
	}
	if len(got) > gitsync.MaxWords || !utf8.ValidString(got) || !strings.Contains(got, "https://host/p") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

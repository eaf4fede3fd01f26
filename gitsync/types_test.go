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
	for text, want := range map[string]gitsync.Revision{
		"": {}, "main@sha1:" + hash: {Branch: "main", Hash: hash}, "team/a@b@sha1:" + hash: {Branch: "team/a@b", Hash: hash},
	} {
		got, err := gitsync.ParseRevision(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"main", "main@sha1:abc", "@sha1:" + hash, "main@sha256:" + hash, "main@sha1:" + strings.ToUpper(hash)} {
		var wrong *gitsync.RevisionError
		if _, err := gitsync.ParseRevision(bad); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", bad, err)
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

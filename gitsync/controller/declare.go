package controller

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
	"github.com/pushback-dev/pushback/gitsync/check"
	"github.com/pushback-dev/pushback/gitsync/fetch"
	"github.com/pushback-dev/pushback/gitsync/render"
	"github.com/pushback-dev/pushback/gitsync/translate"
)

// declared is what the folder of a GitSync declares, ready to be applied.
type declared struct {
	objects []gitsync.Object
	result  render.Result
}

// declare renders, translates and checks a folder: everything that can be said
// of a tree without asking the cluster. It is what a sync applies and what a
// revert is proved with.
func declare(files render.Files, sync *v1alpha1.GitSync) (declared, error) {
	result, err := render.Folder(files, sync.Spec.Path)
	if err != nil {
		return declared{}, err
	}
	objects, err := translate.Tree(result.Objects, sync.Namespace)
	if err != nil {
		return declared{}, err
	}
	if err := check.Tree(objects, check.Namespaces{Target: sync.Spec.TargetNamespace, Default: sync.Namespace}); err != nil {
		return declared{}, err
	}
	return declared{objects: objects, result: result}, nil
}

// sources are the files of an object, for its ControllerRevision.
func (d declared) sources(o gitsync.Object) []apply.File {
	var out []apply.File
	for _, source := range d.result.Sources(o) {
		out = append(out, apply.File{Path: source.Path, Mode: fmt.Sprintf("%o", source.Mode), Data: source.Data})
	}
	return out
}

// commitsOf are commits with the trailers that their messages hold.
func commitsOf(branch string, messages []fetch.Message) []apply.Commit {
	out := make([]apply.Commit, 0, len(messages))
	for _, message := range messages {
		out = append(out, apply.Commit{
			Revision: gitsync.Revision{Branch: branch, Hash: message.Commit}, Subject: message.Subject(),
			Retry:        trailers(message.Text, v1alpha1.RetryTrailer),
			Irreversible: trailers(message.Text, v1alpha1.IrreversibleTrailer),
		})
	}
	return out
}

// trailer is a line "Name: value" of a commit message.
var trailer = regexp.MustCompile(`^([A-Za-z0-9-]+):[ \t]*(\S.*)$`)

// trailers returns the values of a trailer. Paragraphs that hold nothing but
// trailers count wherever they stand, because a squash merge puts those of each
// commit in the middle.
func trailers(message, name string) []string {
	var out []string
	for _, paragraph := range strings.Split(strings.ReplaceAll(message, "\r\n", "\n"), "\n\n") {
		var found []string
		for _, line := range strings.Split(strings.TrimSpace(paragraph), "\n") {
			match := trailer.FindStringSubmatch(strings.TrimRight(line, " \t"))
			if match == nil {
				found = nil
				break
			}
			if strings.EqualFold(match[1], name) {
				found = append(found, match[2])
			}
		}
		out = append(out, found...)
	}
	return out
}

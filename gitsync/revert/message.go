package revert

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/revertspec"
)

// limits of a message, in characters.
const (
	maxSubject      = 100
	maxLine         = 500
	maxMeasurements = 10
)

// Message is the text of the commit: a subject that quotes the rejected
// commit's, a body, and trailers that machines read. It is a function of the
// request alone, so that two controllers make the same commit.
//
// body is the template of spec.revert.message; empty for the text of our own.
// Trailers at its end, such as Signed-off-by, stand before ours. A template that
// can't be used is a *revertspec.MessageError.
func Message(r v1alpha1.RevertRequest, body string) (string, error) {
	data := messageData(r)
	text := ownBody(data)
	if body != "" {
		var err error
		if text, err = execute(body, data); err != nil {
			return "", err
		}
	}
	parts := []string{subject(data)}
	own := trailers(data)
	if text = strings.TrimSpace(text); text != "" {
		if before, last := cutParagraph(text); allTrailers(last) {
			text, own = before, last+"\n"+own
		}
	}
	if text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, own), "\n\n") + "\n", nil
}

// messageData is the request made fit for quoting: each text one line that hides
// nothing from automation, and none with a password of a URL in it.
func messageData(r v1alpha1.RevertRequest) revertspec.MessageData {
	data := revertspec.MessageData{
		Rollout:  revertspec.MessageObject{Namespace: quote(r.Rollout.Namespace, maxLine), Name: quote(r.Rollout.Name, maxLine)},
		GitSync:  revertspec.MessageObject{Namespace: quote(r.GitSync.Namespace, maxLine), Name: quote(r.GitSync.Name, maxLine)},
		Rejected: quote(r.Rejected, maxLine), Stable: quote(r.Stable, maxLine), Attempt: r.Attempt,
		Reason: quote(string(r.Reason), maxLine), Message: quote(r.Message, maxLine),
		RejectedRevision: quote(r.RejectedRevision, maxLine), RejectedSubject: quote(r.RejectedSubject, maxSubject),
		AnalysisRun: quote(r.AnalysisRun, maxLine), AbortedAt: r.AbortedAt.UTC().Format(time.RFC3339),
	}
	if r.Undo != nil {
		data.Undo, data.RequestedBy = quote(r.Undo.Token, maxLine), quote(r.Undo.RequestedBy, maxSubject)
	}
	for _, line := range r.Measurements[:min(len(r.Measurements), maxMeasurements)] {
		data.Measurements = append(data.Measurements, quote(line, maxLine))
	}
	return data
}

// subject reads Revert "…", as git writes it; or Undo "…".
func subject(d revertspec.MessageData) string {
	quoted := d.RejectedSubject
	if quoted == "" {
		quoted = OneLine(d.Rollout.Name+" "+d.Rejected, maxSubject)
	}
	verb := "Revert"
	if d.Undo != "" {
		verb = "Undo"
	}
	return verb + ` "` + strings.ReplaceAll(quoted, `"`, "'") + `"`
}

// undoBody tells a person who wanted what.
func undoBody(d revertspec.MessageData) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Undo of template %s of Rollout %s/%s", d.Rejected, d.Rollout.Namespace, d.Rollout.Name)
	if d.RejectedRevision != "" {
		fmt.Fprintf(&out, ",\ndeclared by %s", d.RejectedRevision)
	}
	out.WriteString(",\nasked for with pushback undo")
	if d.RequestedBy != "" {
		fmt.Fprintf(&out, " by %s", d.RequestedBy)
	}
	if d.Message != "" {
		fmt.Fprintf(&out, ": %s", d.Message)
	}
	fmt.Fprintf(&out, ".\nThis brings back template %s, which is rolled out like any other.", d.Stable)
	return out.String()
}

// ownBody tells a person what happened.
func ownBody(d revertspec.MessageData) string {
	if d.Undo != "" {
		return undoBody(d)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Rollout %s/%s rejected template %s", d.Rollout.Namespace, d.Rollout.Name, d.Rejected)
	if d.RejectedRevision != "" {
		fmt.Fprintf(&out, " of %s", d.RejectedRevision)
	}
	fmt.Fprintf(&out, ":\n%s", reason(d.Reason))
	if d.Message != "" {
		fmt.Fprintf(&out, ": %s", d.Message)
	}
	fmt.Fprintf(&out, ".\nThis brings back template %s, which is what is running.", d.Stable)
	for i, line := range d.Measurements {
		if i == 0 {
			out.WriteString("\n\nMeasurements:\n")
		}
		fmt.Fprintf(&out, "- %s\n", line)
	}
	return out.String()
}

func reason(r string) string {
	switch v1alpha1.AbortReason(r) {
	case v1alpha1.AbortFailed:
		return "its analysis failed"
	case v1alpha1.AbortDeadline:
		return "it made no progress before its deadline"
	case v1alpha1.AbortByPerson:
		return "it was aborted by a person"
	case v1alpha1.AbortError:
		return "it could not be measured"
	case v1alpha1.UndoByPerson:
		return "a person wants an earlier version back"
	}
	return "reason " + r
}

// execute runs a user's template. What it writes is cleaned line by line, and
// what then looks like one of our trailers is left out: a template that does so
// of its own is refused beforehand, so that this line came from what it quotes.
func execute(body string, d revertspec.MessageData) (string, error) {
	text, err := revertspec.ExecuteMessage(body, d)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRightFunc(clean(strings.Map(spaced, line)), unicode.IsSpace)
		if !revertspec.IsOwnTrailer(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// cutParagraph cuts the last paragraph off a text.
func cutParagraph(text string) (before, last string) {
	at := strings.LastIndex(text, "\n\n")
	if at < 0 {
		return "", text
	}
	return strings.TrimRight(text[:at], "\n"), text[at+2:]
}

// trailerLine is a line of git-interpret-trailers.
var trailerLine = regexp.MustCompile(`^[A-Za-z0-9-]+: \S`)

func allTrailers(paragraph string) bool {
	for _, line := range strings.Split(paragraph, "\n") {
		if !trailerLine.MatchString(line) {
			return false
		}
	}
	return true
}

// trailers are the last paragraph: ASCII, one line each.
func trailers(d revertspec.MessageData) string {
	var lines []string
	add := func(name, value string) {
		if value = ascii(value); value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	add(v1alpha1.RolloutTrailer, d.Rollout.Namespace+"/"+d.Rollout.Name)
	if d.Undo != "" { // not Rejected: no revert of this version must take this commit for its own
		add(v1alpha1.UndoTrailer, d.Undo)
		add(v1alpha1.UndoneTemplateTrailer, d.Rejected)
		add(v1alpha1.RestoredTemplateTrailer, d.Stable)
		add(v1alpha1.UndoneCommitTrailer, hashOf(d.RejectedRevision))
		return strings.Join(lines, "\n")
	}
	add(v1alpha1.RejectedTemplateTrailer, d.Rejected)
	add(v1alpha1.RestoredTemplateTrailer, d.Stable)
	add(v1alpha1.RejectedCommitTrailer, hashOf(d.RejectedRevision))
	add(v1alpha1.AttemptTrailer, strconv.FormatInt(d.Attempt, 10))
	add(v1alpha1.AnalysisTrailer, d.AnalysisRun)
	return strings.Join(lines, "\n")
}

// hashOf is the commit in main@sha1:<hash>.
func hashOf(revision string) string {
	_, hash, _ := strings.Cut(revision, "@sha1:")
	return hash
}

// skips are words by which a commit tells automation to look away. Quoted from
// the rejected commit, they would hide the revert too.
var skips = []string{"[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "[skip cd]", "[skip deploy]",
	"[skip netlify]", "[skip vercel]", "***no_ci***", "skip-checks: true", "skip-checks:true", "[azurepipelines skip]", "[skip azurepipelines]",
	"[azp skip]", "[skip azp]", "[skip azpipelines]", "[azpipelines skip]", "[skip travis]", "[travis skip]", "[skip circle]", "[circle skip]", "[skip appveyor]", "[appveyor skip]", "[skip render]", "[render skip]"}

// quote makes what others wrote one line without skips and credentials. Taking a
// skip out, or a character that doesn't print, may leave another one.
func quote(text string, limit int) string {
	text = credentials.ReplaceAllString(OneLine(text, maxQuoted), "$1")
	for {
		next := withoutSkips(OneLine(text, maxQuoted))
		if next == text {
			return OneLine(text, limit)
		}
		text = next
	}
}

// credentials are the user part of a URL.
var credentials = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>]*@`)

// maxQuoted bounds what is looked through, in characters.
const maxQuoted = 2000

func withoutSkips(text string) string {
	for again := true; again; {
		again = false
		for _, skip := range skips {
			if at := indexFold(text, skip); at >= 0 {
				text, again = text[:at]+text[at+len(skip):], true
			}
		}
	}
	return text
}

// indexFold finds ASCII text whatever its case.
func indexFold(text, part string) int {
	for i := 0; i+len(part) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// OneLine makes text fit for one line: no control or direction characters, one
// space where there was white space, at most so many characters.
func OneLine(text string, limit int) string {
	line := []rune(strings.Join(strings.Fields(clean(strings.Map(spaced, text))), " "))
	if len(line) > limit {
		line = append(line[:limit-3], '.', '.', '.')
	}
	return string(line)
}

func spaced(r rune) rune {
	if unicode.IsSpace(r) || unicode.IsControl(r) {
		return ' '
	}
	return r
}

// clean drops what doesn't print, such as escapes of terminals and marks that
// turn the direction of text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
}

package revert

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// limits of a message, in characters.
const (
	maxSubject      = 100
	maxLine         = 500
	maxMeasurements = 10
	maxBody         = 8 << 10
)

// MessageError says that GitSync.spec.revert.message can't be used.
type MessageError struct{ Problem string }

// Error says what to do.
func (e *MessageError) Error() string {
	return "revert.message is not a usable Go template: " + e.Problem
}

// Message is the text of the commit: a subject that quotes the rejected
// commit's, a body, and trailers that machines read. It is a function of the
// request alone, so that two controllers make the same commit.
//
// body is the Go template of GitSync.spec.revert.message, over the fields of
// RevertRequest; empty for the text of our own. A template that can't be
// parsed or executed is a *MessageError.
func Message(r v1alpha1.RevertRequest, body string) (string, error) {
	text := ownBody(r)
	if body != "" {
		var err error
		if text, err = execute(body, r); err != nil {
			return "", err
		}
	}
	parts := []string{subject(r)}
	if text = strings.TrimSpace(text); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(append(parts, trailers(r)), "\n\n") + "\n", nil
}

// subject reads Revert "…", as git writes it.
func subject(r v1alpha1.RevertRequest) string {
	quoted := OneLine(withoutSkips(r.RejectedSubject), maxSubject)
	if quoted == "" {
		quoted = OneLine(r.Rollout.Name+" "+r.Rejected, maxSubject)
	}
	return `Revert "` + strings.ReplaceAll(quoted, `"`, "'") + `"`
}

// ownBody tells a person what happened.
func ownBody(r v1alpha1.RevertRequest) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Rollout %s/%s rejected template %s", r.Rollout.Namespace, r.Rollout.Name, r.Rejected)
	if r.RejectedRevision != "" {
		fmt.Fprintf(&out, " of %s", OneLine(r.RejectedRevision, maxLine))
	}
	fmt.Fprintf(&out, ":\n%s", reason(r.Reason))
	if message := OneLine(withoutSkips(r.Message), maxLine); message != "" {
		fmt.Fprintf(&out, ": %s", message)
	}
	fmt.Fprintf(&out, ".\nThis brings back template %s, which is what is running.", r.Stable)
	for i, line := range r.Measurements {
		if i == maxMeasurements {
			break
		}
		if i == 0 {
			out.WriteString("\n\nMeasurements:\n")
		}
		fmt.Fprintf(&out, "- %s\n", OneLine(withoutSkips(line), maxLine))
	}
	return out.String()
}

func reason(r v1alpha1.AbortReason) string {
	switch r {
	case v1alpha1.AbortFailed:
		return "its analysis failed"
	case v1alpha1.AbortDeadline:
		return "it made no progress before its deadline"
	case v1alpha1.AbortByPerson:
		return "it was aborted by a person"
	case v1alpha1.AbortError:
		return "it could not be measured"
	}
	return OneLine(string(r), maxLine)
}

// execute runs a user's template; what it writes is cleaned line by line, and
// lines that look like our trailers are left out.
func execute(body string, r v1alpha1.RevertRequest) (string, error) {
	t, err := template.New("message").Option("missingkey=error").Parse(body)
	if err != nil {
		return "", &MessageError{Problem: err.Error()}
	}
	out := &limited{}
	if err := t.Execute(out, r); err != nil {
		return "", &MessageError{Problem: err.Error()}
	}
	var lines []string
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "Pushback-") {
			continue
		}
		lines = append(lines, strings.TrimRight(clean(withoutSkips(line)), " "))
	}
	return strings.Join(lines, "\n"), nil
}

// limited stops a template that writes without end.
type limited struct{ strings.Builder }

// Write fails when the body is full.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxBody {
		return 0, fmt.Errorf("it writes more than %d bytes", maxBody)
	}
	return l.Builder.Write(p)
}

// trailers are the last paragraph: ASCII, one line each.
func trailers(r v1alpha1.RevertRequest) string {
	var lines []string
	add := func(name, value string) {
		if value = ascii(OneLine(value, maxLine)); value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	add(v1alpha1.RolloutTrailer, r.Rollout.Namespace+"/"+r.Rollout.Name)
	add(v1alpha1.RejectedTemplateTrailer, r.Rejected)
	add(v1alpha1.RestoredTemplateTrailer, r.Stable)
	add(v1alpha1.RejectedCommitTrailer, hashOf(r.RejectedRevision))
	add(v1alpha1.AttemptTrailer, strconv.FormatInt(r.Attempt, 10))
	add(v1alpha1.AnalysisTrailer, r.AnalysisRun)
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

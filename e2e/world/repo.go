package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Repo is a bare Git repository and a person's clone of it.
type Repo struct {
	// Bare is the repository that the GitSync follows; Work is the clone.
	Bare, Work string
	// Branch that both are on.
	Branch string
}

// InitRepo makes an empty repository below dir.
func InitRepo(ctx context.Context, dir string) (*Repo, error) {
	r := &Repo{Bare: filepath.Join(dir, "shop.git"), Work: filepath.Join(dir, "shop"), Branch: "main"}
	if _, err := git(ctx, dir, "init", "--quiet", "--bare", "--initial-branch="+r.Branch, r.Bare); err != nil {
		return nil, err
	}
	if _, err := git(ctx, dir, "clone", "--quiet", r.Bare, r.Work); err != nil {
		return nil, err
	}
	for _, setting := range [][2]string{
		{"user.name", "Ada Developer"}, {"user.email", "ada@example.com"}, {"commit.gpgsign", "false"}, {"pull.rebase", "true"},
	} {
		if _, err := git(ctx, r.Work, "config", setting[0], setting[1]); err != nil {
			return nil, err
		}
	}
	_, err := git(ctx, r.Work, "checkout", "--quiet", "-B", r.Branch)
	return r, err
}

// URL for a GitSync.
func (r *Repo) URL() string { return "file://" + r.Bare }

// Commit writes files (a nil content deletes one), commits and pushes them, and
// returns the commit. Work is brought up to date first, as a person would do.
func (r *Repo) Commit(ctx context.Context, message string, files map[string][]byte) (string, error) {
	if err := r.Pull(ctx); err != nil {
		return "", err
	}
	for path, content := range files {
		full := filepath.Join(r.Work, path)
		if content == nil {
			if err := os.Remove(full); err != nil {
				return "", err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(full, content, 0o644); err != nil {
			return "", err
		}
	}
	if _, err := git(ctx, r.Work, "add", "--all"); err != nil {
		return "", err
	}
	if _, err := git(ctx, r.Work, "commit", "--quiet", "--message", message); err != nil {
		return "", err
	}
	if _, err := git(ctx, r.Work, "push", "--quiet", "origin", r.Branch); err != nil {
		return "", err
	}
	return r.Head(ctx)
}

// Pull brings Work up to date; an empty repository is up to date.
func (r *Repo) Pull(ctx context.Context) error {
	refs, err := git(ctx, r.Work, "ls-remote", "origin", "refs/heads/"+r.Branch)
	if err != nil || strings.TrimSpace(refs) == "" {
		return err
	}
	_, err = git(ctx, r.Work, "pull", "--quiet", "origin", r.Branch)
	return err
}

// Head is the branch's commit in the repository.
func (r *Repo) Head(ctx context.Context) (string, error) {
	out, err := git(ctx, r.Bare, "rev-parse", "refs/heads/"+r.Branch)
	return strings.TrimSpace(out), err
}

// Read is a file at the branch's head.
func (r *Repo) Read(ctx context.Context, path string) (string, error) {
	return git(ctx, r.Bare, "show", r.Branch+":"+path)
}

// Log is `git log` with the given arguments.
func (r *Repo) Log(ctx context.Context, args ...string) (string, error) {
	return git(ctx, r.Bare, append([]string{"log", "--no-color"}, args...)...)
}

// Commits counts the branch's commits.
func (r *Repo) Commits(ctx context.Context) (int, error) {
	out, err := git(ctx, r.Bare, "rev-list", "--count", r.Branch)
	if err != nil {
		return 0, err
	}
	var count int
	_, err = fmt.Sscan(out, &count)
	return count, err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// A person's own settings (signing, hooks, templates) must not reach in here.
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// lockName is the file that marks a folder as the demo's, and that a running
// demo holds a lock on.
const lockName = ".pushback-demo"

// errInUse is returned for a folder in which another demo runs.
var errInUse = errors.New("another demo runs in this folder: end it, or give this one another with ARGS='--dir FOLDER'")

// errForeign is returned for a folder with files that no demo made.
var errForeign = errors.New("the folder holds files that are not the demo's, and would be emptied: give an empty or a new one with --dir")

// claim locks the folder and empties it; the folder is free again when the
// returned file is closed. Errors: errInUse, errForeign.
func claim(dir string) (*os.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("looking into the demo's folder: %w", err)
	}
	_, err = os.Stat(filepath.Join(dir, lockName))
	if len(entries) > 0 && err != nil && dir != defaultDir {
		return nil, fmt.Errorf("%s: %w", dir, errForeign)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the demo's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the demo's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, errInUse), lock.Close())
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return nil, errors.Join(fmt.Errorf("emptying the demo's folder: %w", err), lock.Close())
		}
	}
	return lock, nil
}

// checkTools looks for the programs that the demo runs, before it builds anything.
func checkTools() error {
	for _, tool := range []string{"go", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("the demo needs %s: %w", tool, err)
		}
	}
	return nil
}

package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stamp is a digest of everything that decides what the command's binary is.
func stamp(source, name, toolchain string) (string, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s\n%s\n", toolchain, strings.Join(buildFlags, "\n"))
	files, err := filepath.Glob(filepath.Join(source, name, "*.go"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("no Go files in %s: the checkout is not whole", filepath.Join(source, name))
	}
	files = append(files, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading a source of %s: %w", name, err)
		}
		fmt.Fprintf(digest, "%s %d\n", filepath.Base(file), len(text))
		digest.Write(text)
	}
	return fmt.Sprintf("%x\n", digest.Sum(nil)), nil
}

// lock takes the file's lock, which other processes may hold while they build, and returns what gives it back.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	for waited := false; ; waited = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !waited {
			fmt.Fprintln(progress, "control plane: waiting for another process that builds it")
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

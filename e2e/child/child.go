// Package child starts operating system processes that never outlive this one, for the test control plane
// and the local node. It knows nothing of Kubernetes: it may import the standard library only.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Path string   // the binary, absolute or relative to Dir
	Args []string // without the name of the program
	Env  []string // the whole environment, "NAME=value"; nil means none
	Dir  string   // the working directory; empty means this process's
	Log  string   // the file that takes both outputs, created or appended to
}

// Exit says how a process ended.
type Exit struct {
	Code   int            // the exit status, or 128 plus the signal, as a shell says it
	Signal syscall.Signal // the signal that ended it, 0 if none did
	Time   time.Time
}

// Process is a started process. It is the leader of a process group of its own, so that a terminal's
// Ctrl-C reaches it only through its parent, and what it started dies with it.
type Process struct {
	pid  int
	done chan struct{}
	exit Exit // written before done is closed

	mu    sync.Mutex // held while a signal is sent, so that a reaped pid is never hit
	ended bool
}

// Start runs the process. On Linux the kernel kills it when this process dies, however that happens.
func Start(s Spec) (*Process, error) {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", s.Path, err)
	}
	defer log.Close()
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, log, log
	cmd.Env = append([]string{}, s.Env...)
	cmd.SysProcAttr = attributes()

	p := &Process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The parent death signal follows the thread that forked, not the process: the thread must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.reap(cmd)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Path, err)
	}
	return p, nil
}

func (p *Process) reap(cmd *exec.Cmd) {
	// The error repeats what ProcessState says: output goes to a file, so there is no copying that could fail.
	_ = cmd.Wait()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	// Wait frees the pid, but the group's id stays taken while a member of it lives: this hits only what it left.
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.exit = exitOf(cmd.ProcessState)
	close(p.done)
}

func exitOf(state *os.ProcessState) Exit {
	e := Exit{Code: state.ExitCode(), Time: time.Now()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
		e.Code = 128 + int(e.Signal)
	}
	return e
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit waits for the end of the process and says how it came.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

// Terminate asks the process to end (SIGTERM). A process that has ended is no error.
func (p *Process) Terminate() error { return p.signal(p.pid, syscall.SIGTERM) }

// Kill ends the process and all of its group (SIGKILL). A process that has ended is no error.
func (p *Process) Kill() error { return p.signal(-p.pid, syscall.SIGKILL) }

func (p *Process) signal(pid int, s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", s, p.pid, err)
	}
	return nil
}

// Stop asks the process to end, kills it when grace has passed, and returns when it is gone.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Terminate(); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	if err := p.Kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

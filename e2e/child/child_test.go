package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain plays the processes under test when it is told to by the environment.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_TEST_ROLE") {
	case "":
		os.Exit(m.Run())
	case "exit3":
		fmt.Println("to stdout")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "polite":
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "parent":
		p, err := Start(self("polite", os.Getenv("CHILD_TEST_LOG")))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.Pid())
		time.Sleep(time.Minute)
	}
}

func self(role, log string) Spec {
	return Spec{Path: os.Args[0], Env: []string{"CHILD_TEST_ROLE=" + role, "CHILD_TEST_LOG=" + log}, Log: log}
}

func start(t *testing.T, role string) (*Process, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(self(role, log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill(); <-p.Done() })
	return p, log
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

func logged(log, text string) func() bool {
	return func() bool {
		b, _ := os.ReadFile(log)
		return strings.Contains(string(b), text)
	}
}

func TestExitCodeAndLog(t *testing.T) {
	p, log := start(t, "exit3")
	if got := p.Exit(); got.Code != 3 || got.Signal != 0 || got.Time.IsZero() {
		t.Errorf("exit = %+v, want code 3", got)
	}
	if !logged(log, "to stdout")() {
		t.Error("the output is not in the log")
	}
	if err := p.Terminate(); err != nil {
		t.Errorf("terminating an ended process: %v", err)
	}
}

func TestStop(t *testing.T) {
	for name, tc := range map[string]struct {
		grace time.Duration
		want  int
	}{
		"polite":   {time.Minute, 128 + int(syscall.SIGTERM)},
		"stubborn": {50 * time.Millisecond, 128 + int(syscall.SIGKILL)},
	} {
		t.Run(name, func(t *testing.T) {
			p, log := start(t, name)
			eventually(t, "the child says ready", logged(log, "ready"))
			if err := p.Stop(tc.grace); err != nil {
				t.Fatal(err)
			}
			if got := p.Exit().Code; got != tc.want {
				t.Errorf("code = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestStartOfMissingBinary(t *testing.T) {
	_, err := Start(Spec{Path: "/nonexistent/binary", Log: filepath.Join(t.TempDir(), "log")})
	if !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("err = %v, want not exist", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if _, isPath := err.(*os.PathError); isPath {
			return err
		}
		err = u.Unwrap()
	}
}

func TestChildDiesWithKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent death signal")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = []string{"CHILD_TEST_ROLE=parent", "CHILD_TEST_LOG=" + filepath.Join(t.TempDir(), "log")}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	eventually(t, "the grandchild is gone", func() bool { return !running(pid) })
}

// running says whether the process lives; one that waits to be reaped by init does not.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}

// Command pushback is Pushback's command line: it looks at rollouts and steers
// them, and runs the small servers that the demo and the tests use. Installed as
// kubectl-pushback it is the kubectl plugin "kubectl pushback".
//
// Here are flags, files and terminals; what the verbs do is in packages of their
// own, and no other package may import this one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := newRootCommand(os.Args[0]).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(exitCode(err))
	}
}

// exitCode is 1, unless the error says otherwise.
func exitCode(err error) int {
	if own := (*exitError)(nil); errors.As(err, &own) {
		return own.code
	}
	return 1
}

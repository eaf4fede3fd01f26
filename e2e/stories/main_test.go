package stories

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/pushback-dev/pushback/e2e/node"
	"github.com/pushback-dev/pushback/e2e/world"
)

// shared is the world of all stories; each has a namespace and a repository of its own.
var shared *world.World

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		fmt.Println("the stories need the control plane: skipped with -short")
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "pushback-stories-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	shared, err = world.New(ctx, world.Options{Dir: dir, Hollow: &node.Hollow{}, AuditWrites: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := shared.StartController(ctx, controller, soloFlags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are in", dir)
	}
	return code
}

// controller is the name of the one controller; it takes no lease, so that a
// story that kills it needn't wait for the lease to run out.
const controller = "controller"

var soloFlags = []string{"--leader-elect=false"}

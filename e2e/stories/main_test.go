package stories

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/e2e/node"
	"github.com/pushback-dev/pushback/e2e/world"
)

// shared is the world of all stories; each has a namespace and a repository of its own.
var shared *world.World

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		// Stories wait more than they compute: on two cores the default of two at
		// once leaves both idle most of the time.
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce))
	}
	os.Exit(run(m))
}

// atOnce is how many parallel stories run at the same time when nothing else is asked for.
const atOnce = 6

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
	if err := judgeWrites(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
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

// judgeWrites looks at all writes of all stories that ran (law 17).
func judgeWrites() error {
	writes, err := shared.Cluster.Writes()
	if err != nil {
		return err
	}
	if found := unbound(writes); len(found) > 0 {
		return fmt.Errorf("FAIL: law 17: %d of %d writes carry nothing of what was read, such as\n%s",
			len(found), len(writes), strings.Join(found[:min(len(found), 20)], "\n"))
	}
	return nil
}

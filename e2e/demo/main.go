// Command demo shows the whole loop on one machine: a good version is promoted
// step by step, a bad one is taken back by its measurement, and a revert commit
// makes Git say what runs. It exits non-zero with the reason if any of it does
// not happen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo failed:", err)
		os.Exit(1)
	}
}

// defaultDir is below bin/, which Git ignores.
var defaultDir = filepath.Join("bin", "demo")

// settings are the flags.
type settings struct {
	// kept, if set, is called with what was printed when the walk is over and all goes on running.
	kept   func(instructions string)
	dir    string
	keep   bool
	rps    float64
	image  string
	target *target // nil for a control plane of the demo's own
}

func parse(args []string) (settings, error) {
	var s settings
	set := flag.NewFlagSet("demo", flag.ContinueOnError)
	set.StringVar(&s.dir, "dir", defaultDir, "folder for the repository, logs and the kubeconfig; emptied first")
	set.BoolVar(&s.keep, "keep", false, "leave everything running afterwards, until Ctrl-C")
	set.Float64Var(&s.rps, "rps", 40, "requests per second of the load generator")
	cluster := set.Bool("cluster", false, "run on the cluster of KUBECONFIG, its current context, instead of a local control plane")
	set.StringVar(&s.image, "image", sampleImage, "with --cluster: the image of the shop's pods, which the cluster's nodes must be able to pull")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	if set.NArg() > 0 {
		return s, fmt.Errorf("the demo takes flags only, not %q", set.Arg(0))
	}
	if !imageName.MatchString(s.image) {
		return s, fmt.Errorf("--image %q is not an image reference", s.image)
	}
	if !*cluster && s.image != sampleImage {
		return s, errors.New("--image is for --cluster: the local node has no images, it runs the binary of this checkout")
	}
	if s.rps <= 0 || s.rps > 1000 {
		return s, fmt.Errorf("--rps must be above 0 and at most 1000, not %v", s.rps)
	}
	if *cluster {
		var err error
		if s.target, err = findTarget(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return perform(ctx, s)
}

// perform is the demo with its settings.
func perform(ctx context.Context, s settings) error {
	if err := checkTools(); err != nil {
		return err
	}
	folder, err := claim(s.dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	show, err := newShow(ctx, s)
	if err != nil {
		return err
	}
	err = show.walk(ctx)
	if err == nil && s.keep {
		err = show.linger(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted before its end")
	}
	if err := errors.Join(err, show.stop()); err != nil {
		return err
	}
	if s.keep {
		fmt.Printf("\nEverything has ended. The repository and the logs stay in %s.\n", s.dir)
	}
	return nil
}

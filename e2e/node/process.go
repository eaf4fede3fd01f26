package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/child"
)

// ListenVariable tells a process where to listen for its first container port: host:port. If it has several,
// ListenVariable_<port> tells each.
const ListenVariable = "PUSHBACK_LISTEN"

// processLauncher runs containers as processes of this machine.
type processLauncher struct {
	client kubernetes.Interface
	images map[string]Image
	logs   logs
	table  *table
	events interface {
		warn(pod *corev1.Pod, reason, format string, args ...any)
	}
}

func (l *processLauncher) survives() bool { return false }

func (l *processLauncher) launch(ctx context.Context, o launch) (instance, error) {
	image, known := l.images[repository(o.container.Image)]
	if !known {
		return nil, &waitError{reason: "ErrImagePull", backoff: "ImagePullBackOff", event: "Failed",
			message: fmt.Sprintf("no local binary is mapped to image %q: the local node knows %s", o.container.Image, strings.Join(slices.Sorted(maps.Keys(l.images)), ", "))}
	}
	env, err := environment(ctx, o.pod, o.container, live{l.client, o.pod.Namespace})
	if err != nil {
		return nil, &waitError{reason: "CreateContainerConfigError", event: "Failed", message: err.Error()}
	}
	if err := l.setListen(env, o); err != nil {
		return nil, err
	}
	spec, err := l.spec(image, env, o)
	if err != nil {
		return nil, err
	}
	process, err := child.Start(spec)
	if err != nil {
		return nil, &startError{err}
	}
	return l.attend(process, o), nil
}

// repository is the image's name without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// setListen adds where to listen. These win over the container's own env: another value can't work.
func (l *processLauncher) setListen(env map[string]string, o launch) error {
	for i, p := range o.container.Ports {
		address, err := l.table.listen(o.pod.UID, o.pod.Status.PodIP, p.ContainerPort)
		if err != nil {
			return &startError{err}
		}
		if i == 0 {
			env[ListenVariable] = address
		}
		env[ListenVariable+"_"+strconv.Itoa(int(p.ContainerPort))] = address
	}
	return nil
}

func (l *processLauncher) spec(image Image, env map[string]string, o launch) (child.Spec, error) {
	args := append([]string{}, image.Args...)
	if len(o.container.Command) > 0 {
		// The image holds one program, as a distroless one does: a command can name it, and nothing else is there.
		name := expand(o.container.Command[0], env)
		if path.Base(name) != filepath.Base(image.Path) && path.Base(name) != path.Base(repository(o.container.Image)) {
			return child.Spec{}, &startError{fmt.Errorf("command %q: there is only %s in image %s on the local node", name, filepath.Base(image.Path), o.container.Image)}
		}
		args = expandAll(o.container.Command[1:], env)
	}
	args = append(args, expandAll(o.container.Args, env)...)
	log := l.logs.file(o.pod, o.container.Name, o.restart)
	dir := filepath.Dir(log)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return child.Spec{}, &startError{err}
	}
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "HOSTNAME": o.pod.Name}
	for _, pair := range image.Env {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	maps.Copy(all, env)
	binary, err := filepath.Abs(image.Path)
	if err != nil {
		return child.Spec{}, &startError{err}
	}
	return child.Spec{Path: binary, Args: args, Env: listed(all), Dir: dir, Log: log}, nil
}

func expandAll(texts []string, env map[string]string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, expand(text, env))
	}
	return out
}

// attend waits for the process's end and probes it meanwhile.
func (l *processLauncher) attend(process *child.Process, o launch) *processInstance {
	p := &processInstance{process: process, gone: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var probes sync.WaitGroup
	probes.Go(func() { l.probe(ctx, p, o) })
	go func() {
		end := process.Exit()
		cancel()
		probes.Wait() // so that no result of this run comes after its end
		o.tell(event{kind: exited, exit: exit{code: int32(end.Code), signal: int32(end.Signal), time: end.Time}})
		close(p.gone)
	}()
	return p
}

// probe runs the startup probe and, when it has succeeded, the others.
func (l *processLauncher) probe(ctx context.Context, p *processInstance, o launch) {
	c := o.container
	prober := func(probe *corev1.Probe) *prober {
		return &prober{probe: probe, ip: o.pod.Status.PodIP, ports: c.Ports, dial: l.table.dial, began: o.started}
	}
	if c.StartupProbe != nil {
		started, done := context.WithCancelCause(ctx)
		prober(c.StartupProbe).run(started, newTracker(c.StartupProbe, false), func(good bool, why error) {
			if !good {
				l.kill(p, o, "Startup", c.StartupProbe, why)
				return
			}
			done(errStarted)
		})
		if !errors.Is(context.Cause(started), errStarted) {
			return
		}
		o.tell(event{kind: becameStarted})
	}
	if c.ReadinessProbe == nil {
		o.tell(event{kind: becameReady})
	}
	var both sync.WaitGroup
	if c.ReadinessProbe != nil {
		both.Go(func() {
			prober(c.ReadinessProbe).run(ctx, newTracker(c.ReadinessProbe, false), func(good bool, why error) {
				if good {
					o.tell(event{kind: becameReady})
					return
				}
				l.events.warn(o.pod, "Unhealthy", "Readiness probe of container %s failed: %v", c.Name, why)
				o.tell(event{kind: becameUnready})
			})
		})
	}
	if c.LivenessProbe != nil {
		both.Go(func() {
			prober(c.LivenessProbe).run(ctx, newTracker(c.LivenessProbe, true), func(good bool, why error) {
				if !good {
					l.kill(p, o, "Liveness", c.LivenessProbe, why)
				}
			})
		})
	}
	both.Wait()
}

var errStarted = errors.New("started")

// kill ends a run whose probe failed; the pod's restart policy says what follows.
func (l *processLauncher) kill(p *processInstance, o launch, kind string, probe *corev1.Probe, why error) {
	l.events.warn(o.pod, "Unhealthy", "%s probe of container %s failed, it will be restarted: %v", kind, o.container.Name, why)
	grace := gracePeriod(o.pod)
	if s := probe.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	p.stop(grace)
}

// processInstance is a process that runs.
type processInstance struct {
	process *child.Process
	gone    chan struct{}

	mu       sync.Mutex
	deadline time.Time // of the kill; zero before stop
	timer    *time.Timer
}

func (p *processInstance) done() <-chan struct{} { return p.gone }

func (p *processInstance) stop(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline := time.Now().Add(grace)
	if p.timer != nil && !deadline.Before(p.deadline) {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	first := p.timer == nil
	p.deadline = deadline
	// Neither signal can fail but for a process that has ended, or that is not ours any more.
	p.timer = time.AfterFunc(grace, func() { _ = p.process.Kill() })
	if first && grace > 0 {
		_ = p.process.Terminate()
	}
}

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logPoll is how often a log that is followed is looked at.
const logPoll = 100 * time.Millisecond

// logRequest is what a client wants of a log.
type logRequest struct {
	follow, previous bool
	tail             int64 // lines; negative is all
	limit            int64 // bytes; negative is no limit
}

// parseLogRequest reads the query. The log files hold the bytes of both outputs and no times, so what needs
// those is refused by name.
func parseLogRequest(q url.Values) (logRequest, error) {
	r := logRequest{tail: -1, limit: -1}
	for _, name := range []string{"timestamps", "sinceSeconds", "sinceTime"} {
		if v := q.Get(name); v != "" && v != "false" {
			return r, fmt.Errorf("%s is not built on the local node: its logs have no times", name)
		}
	}
	if v := q.Get("stream"); v != "" && v != corev1.LogStreamAll {
		return r, fmt.Errorf("stream %s is not built on the local node: its logs hold both outputs", v)
	}
	for name, flag := range map[string]*bool{"follow": &r.follow, "previous": &r.previous} {
		if v := q.Get(name); v != "" {
			var err error
			if *flag, err = strconv.ParseBool(v); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, number := range map[string]*int64{"tailLines": &r.tail, "limitBytes": &r.limit} {
		if v := q.Get(name); v != "" {
			var err error
			if *number, err = strconv.ParseInt(v, 10, 64); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return r, nil
}

func (n *Node) serveLogs(w http.ResponseWriter, r *http.Request) {
	pod := n.asked(w, r)
	if pod == nil {
		return
	}
	wanted, err := parseLogRequest(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	container := r.PathValue("container")
	restart, err := wantedRun(pod, container, wanted.previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	file, err := os.Open(n.LogFile(pod, container, restart))
	if err != nil {
		http.Error(w, fmt.Sprintf("the log of container %s of pod %s/%s is not there: %v", container, pod.Namespace, pod.Name, err), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	if err := seekTail(file, wanted.tail); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := io.Writer(flushing{w})
	if wanted.limit >= 0 {
		out = &limited{out, wanted.limit}
	}
	// An error here is the client's going away, or the limit.
	_ = n.copyLog(r.Context(), out, file, wanted.follow, func() bool { return n.runs(pod, container, restart) })
}

// wantedRun is the number of the run whose log is asked for.
func wantedRun(pod *corev1.Pod, container string, previous bool) (int32, error) {
	status := containerStatus(pod, container)
	switch {
	case status == nil || status.ContainerID == "":
		return 0, fmt.Errorf("container %q in pod %q is waiting to start", container, pod.Name)
	case previous && status.RestartCount == 0:
		return 0, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	case previous:
		return status.RestartCount - 1, nil
	default:
		return status.RestartCount, nil
	}
}

func containerStatus(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// runs says whether that run of the container is not known to have ended.
func (n *Node) runs(pod *corev1.Pod, container string, restart int32) bool {
	now, err := n.pods.Pods(pod.Namespace).Get(pod.Name)
	if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
		return false
	}
	if err != nil {
		return true
	}
	status := containerStatus(now, container)
	return status != nil && status.RestartCount == restart && status.State.Running != nil
}

// copyLog copies what is in the file and, to follow it, what comes until the run has ended.
func (n *Node) copyLog(ctx context.Context, out io.Writer, file *os.File, follow bool, running func() bool) error {
	ticker := time.NewTicker(logPoll)
	defer ticker.Stop()
	for {
		more := follow && running() // before the copy: what was written until its end must be in it
		if _, err := io.Copy(out, file); err != nil || !more {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// seekTail moves to where the last lines begin; a negative number is all of them.
func seekTail(file io.ReadSeeker, lines int64) error {
	if lines < 0 {
		return nil
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || lines == 0 {
		return err
	}
	const block = 4096
	buffer := make([]byte, block)
	for at := end; at > 0; {
		size := min(at, block)
		at -= size
		if _, err := file.Seek(at, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(file, buffer[:size]); err != nil {
			return err
		}
		for i := size - 1; i >= 0; i-- {
			// The newline that ends the file begins no line.
			if buffer[i] != '\n' || at+i == end-1 {
				continue
			}
			if lines--; lines == 0 {
				_, err := file.Seek(at+i+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// flushing sends each write at once, for those who follow.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

var errLogLimit = errors.New("the limit of bytes is reached")

// limited ends with errLogLimit after so many bytes.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	cut := int64(len(p)) > l.left
	if cut {
		p = p[:l.left]
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	if err == nil && cut {
		err = errLogLimit
	}
	return n, err
}

package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// pipe is a running git-upload-pack or git-receive-pack. Reads and writes fail
// once stop was called; stop may be called more than once.
type pipe struct {
	in     io.WriteCloser
	out    io.Reader
	errors *tail
	// wait returns when the service has ended by itself, or the context has.
	wait func()
	stop func()
}

// start runs a service; when ctx ends, so does everything that waits for it.
// go-git's own transports of ssh and file ignore the context until they are
// connected, and read the user's ~/.ssh.
func (w *wire) start(ctx context.Context, service string) (*stream, error) {
	p, err := w.open(ctx, service)
	if err != nil {
		return nil, err
	}
	return &stream{pipe: p, service: service, release: context.AfterFunc(ctx, p.stop)}, nil
}

// stream is a session over a pipe. It serves one request.
type stream struct {
	*pipe
	service string
	release func() bool
	refs    *packp.AdvRefs
	sent    bool
}

// AdvertisedReferences reads the advertisement.
func (s *stream) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// AdvertisedReferencesContext reads the advertisement. The context given to
// start bounds it.
func (s *stream) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	if s.refs != nil {
		return s.refs, nil
	}
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.out)
	empty := errors.Is(err, packp.ErrEmptyAdvRefs) || (err == nil && refs.IsEmpty())
	switch {
	case empty && s.service == transport.UploadPackServiceName:
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil && !empty:
		return nil, s.explain(err)
	}
	s.refs = refs
	return refs, nil
}

// UploadPack sends a request for objects and reads the answer up to the pack.
func (s *stream) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
		return nil, err
	}
	s.sent = true
	var out bytes.Buffer
	if err := req.UploadRequest.Encode(&out); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(&out, false); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(&out).EncodeString("done\n"); err != nil {
		return nil, err
	}
	if _, err := s.in.Write(out.Bytes()); err != nil {
		return nil, s.explain(err)
	}
	res := packp.NewUploadPackResponse(req)
	if err := res.Decode(io.NopCloser(s.out)); err != nil {
		return nil, s.explain(err)
	}
	return res, nil
}

// ReceivePack sends a command and a pack and reads the report. A nil report
// without an error never happens: no report is io.ErrUnexpectedEOF.
func (s *stream) ReceivePack(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
		return nil, err
	}
	s.sent = true
	if err := req.Encode(s.in); err != nil {
		return nil, s.explain(err)
	}
	var from = s.out
	if req.Capabilities.Supports(capability.Sideband64k) {
		demuxer := sideband.NewDemuxer(sideband.Sideband64k, s.out)
		demuxer.Progress = req.Progress
		from = demuxer
	}
	report := packp.NewReportStatus()
	if err := report.Decode(from); err != nil {
		return nil, s.explain(err)
	}
	return report, report.Error()
}

// Close ends the service, politely when nothing was asked of it.
func (s *stream) Close() error {
	if !s.sent {
		_, _ = s.in.Write(pktline.FlushPkt)
	}
	s.release()
	s.stop()
	return nil
}

// explain adds what the other side wrote to its standard error.
func (s *stream) explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, packp.ErrEmptyInput) {
		s.wait()
	}
	words := s.errors.String()
	for _, unknown := range []string{"not appear to be a git repository", "epository not found", "does not exist",
		"could not be found", "no such repository"} {
		if strings.Contains(words+err.Error(), unknown) {
			return fmt.Errorf("%w: %s", transport.ErrRepositoryNotFound, words)
		}
	}
	if words == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, words)
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// maxTail in bytes.
const maxTail = 4096

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - maxTail; over > 0 {
		t.data = append([]byte(nil), t.data[over:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}

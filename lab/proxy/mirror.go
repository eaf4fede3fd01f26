package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

const (
	// maxMirrorBody is how much of a request's body is kept for its copies, in bytes.
	// A request with more is not copied.
	maxMirrorBody = 1 << 20
	// mirrorTimeout bounds a copy, which nobody waits for.
	mirrorTimeout = 10 * time.Second
)

// The codes of copies that were not sent.
const (
	codeTooLarge = "too_large"
	codeNobody   = "no_endpoint"
)

// mirror sends copies of a request to the mirrors of its rule, each to its exact
// share of the rule's requests, and doesn't wait for them. The body of a request
// that is copied is read first; r can be sent on afterwards as if it had not been.
// A request to upgrade the connection is not copied.
func (g *Gateway) mirror(r *http.Request, live *generation, index int) {
	rule := &live.table.Rules()[index]
	var chosen []*table.Backend
	for i := range rule.Mirrors {
		if r.Header.Get("Upgrade") == "" && live.copies[index][i].Next() == 0 {
			chosen = append(chosen, &rule.Mirrors[i].Backend)
		}
	}
	if len(chosen) == 0 {
		return
	}
	body, whole := keepBody(r)
	for _, to := range chosen {
		switch {
		case !whole:
			g.metrics.mirrored.WithLabelValues(to.Name, codeTooLarge).Inc()
		case len(to.Endpoints) == 0:
			g.metrics.mirrored.WithLabelValues(to.Name, codeNobody).Inc()
		default:
			turn := live.turns[to.Name].Add(1) - 1
			g.sendCopy(r, rule, to, to.Endpoints[turn%uint64(len(to.Endpoints))], body)
		}
	}
}

// keepBody reads the body of r and puts it back; false when it is too large, or
// can't be read, which whoever reads it next will see too.
func keepBody(r *http.Request) (body []byte, whole bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMirrorBody+1))
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	return body, err == nil && len(body) <= maxMirrorBody
}

func (g *Gateway) sendCopy(r *http.Request, rule *table.Rule, to *table.Backend, endpoint string, body []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTimeout) // the client doesn't wait for it
	copied := r.Clone(ctx)
	copied.Body, copied.ContentLength, copied.TransferEncoding = http.NoBody, int64(len(body)), nil
	if len(body) > 0 {
		copied.Body = io.NopCloser(bytes.NewReader(body))
	}
	g.mirrors.Go(func() {
		defer cancel()
		answer := &recorder{ResponseWriter: nowhere{}}
		g.forward(answer, copied, rule, to, endpoint)
		g.metrics.mirrored.WithLabelValues(to.Name, strconv.Itoa(answer.code)).Inc()
	})
}

// nowhere drops an answer.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

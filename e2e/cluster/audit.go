package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// auditPolicy records who wrote what, once per request. Bodies of changes are kept, which show what a write
// rests on, but never those of kinds that hold or may hold secrets. Events and Leases are left out, as the
// project's promise of zero writes leaves Leases out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  resources:
  - {group: "", resources: [events]}
  - {group: events.k8s.io, resources: [events]}
  - {group: coordination.k8s.io, resources: [leases]}
- level: Metadata
  resources:
  - {group: "", resources: [secrets, configmaps, serviceaccounts/token]}
  - {group: apps, resources: [controllerrevisions]}
  - {group: authentication.k8s.io}
  verbs: [create, update, patch, delete, deletecollection]
- level: Request
  verbs: [update, patch, delete]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// ErrNoAudit says that the cluster was started without AuditWrites.
var ErrNoAudit = errors.New("the cluster records no writes: start it with Options.AuditWrites")

// Write is one request to change something, other than an Event or a Lease. Reviews (SubjectAccessReview and
// the like) and token requests are requests of verb create too.
type Write struct {
	Time         time.Time // when the answer was sent
	User         string    // the authenticated user
	Impersonated string    // the impersonated user, if any
	Agent        string    // the User-Agent header
	Verb         string    // create, update, patch, delete or deletecollection
	URI          string    // with the query: fieldManager, dryRun
	Group        string
	Resource     string
	Subresource  string
	Namespace    string
	Name         string
	Code         int // of the answer
	// Body of an update, a patch or a delete, in JSON; empty for all else and for kinds that may hold secrets.
	Body json.RawMessage
}

// DryRun says whether the request asked for no change.
func (w Write) DryRun() bool { return strings.Contains(w.URI, "dryRun=") }

func (c *Cluster) prepareAudit() error {
	c.audit = filepath.Join(c.dir, "audit.log")
	if err := os.WriteFile(filepath.Join(c.dir, "audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}

// Writes are the write requests that the API server has answered so far, in the order of their answers.
// A request that was answered before the call is among them. Errors: ErrNoAudit.
//
// Each call reads only what was appended since the one before: tests ask many times a second.
func (c *Cluster) Writes() ([]Write, error) {
	if c.audit == "" {
		return nil, ErrNoAudit
	}
	c.auditLog.mu.Lock()
	defer c.auditLog.mu.Unlock()
	if err := c.auditLog.read(c.audit); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return slices.Clip(c.auditLog.writes), nil
}

// auditLog is what was read of the log so far.
type auditLog struct {
	mu     sync.Mutex
	offset int64 // of the first line that wasn't read
	writes []Write
}

// read takes in the whole lines that were appended.
func (l *auditLog) read(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(file, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of a line is still to come
		}
		if err != nil {
			return err
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		l.writes = append(l.writes, e.write())
		l.offset += int64(len(line))
	}
}

// auditEvent is the part of audit.k8s.io/v1 Event that is read.
type auditEvent struct {
	Verb, UserAgent, RequestURI string
	User, ImpersonatedUser      struct{ Username string }
	ObjectRef                   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus              struct{ Code int }
	StageTimestamp              time.Time
	RequestObject               json.RawMessage
}

func (e auditEvent) write() Write {
	return Write{
		Time: e.StageTimestamp, User: e.User.Username, Impersonated: e.ImpersonatedUser.Username, Agent: e.UserAgent,
		Verb: e.Verb, URI: e.RequestURI, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
		Body: e.RequestObject,
	}
}

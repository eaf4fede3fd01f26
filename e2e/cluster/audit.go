package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// auditPolicy records who wrote what, once per request and without bodies: no secret gets into the file.
// Events and Leases are left out, as the project's promise of zero writes leaves Leases out.
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
func (c *Cluster) Writes() ([]Write, error) {
	if c.audit == "" {
		return nil, ErrNoAudit
	}
	text, err := os.ReadFile(c.audit)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return decodeWrites(text)
}

func decodeWrites(text []byte) ([]Write, error) {
	var writes []Write
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		writes = append(writes, e.write())
	}
	return writes, lines.Err()
}

// auditEvent is the part of audit.k8s.io/v1 Event that is read.
type auditEvent struct {
	Verb, UserAgent, RequestURI string
	User, ImpersonatedUser      struct{ Username string }
	ObjectRef                   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus              struct{ Code int }
	StageTimestamp              time.Time
}

func (e auditEvent) write() Write {
	return Write{
		Time: e.StageTimestamp, User: e.User.Username, Impersonated: e.ImpersonatedUser.Username, Agent: e.UserAgent,
		Verb: e.Verb, URI: e.RequestURI, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
	}
}

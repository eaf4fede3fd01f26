package awsauth

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"k8s.io/utils/lru"

	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	// maxSessions is the most identities whose credentials are kept.
	maxSessions = 256
	// sessionLife is how long a configuration is used before files and environment are
	// read again. Credentials that expire earlier are renewed earlier.
	sessionLife = 10 * time.Minute
	// roleSession is the name under which roles are assumed, for AWS's own log.
	roleSession = "pushback"
)

var (
	// ErrNoRegion says that neither the metric nor the controller names a region.
	ErrNoRegion = errors.New("there is no AWS region: set authentication.sigv4.region where a metric has it, or AWS_REGION in the controller's environment")
	// ErrBadRegion says that a region is not written like one. It would become part of
	// an address.
	ErrBadRegion = errors.New("the AWS region wants to be small letters, digits and hyphens, such as eu-central-1")
)

var regionForm = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// Identity is as whom AWS is asked. The zero value is the controller itself, in its own
// region.
type Identity struct {
	Region  string
	Profile string
	// RoleARN is assumed if it isn't empty.
	RoleARN string
}

// Options of Sessions.
type Options struct {
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
	// Load adds to how the SDK finds its configuration.
	Load []func(*config.LoadOptions) error
}

// Sessions keep the credentials of identities until they expire. They are safe for
// concurrent use.
type Sessions struct {
	transports *providerhttp.Transports
	load       []func(*config.LoadOptions) error
	kept       *lru.Cache
	now        func() time.Time
}

// NewSessions makes Sessions.
func NewSessions(o Options) *Sessions {
	return &Sessions{transports: providerhttp.New(o.Egress), load: o.Load, kept: lru.New(maxSessions), now: time.Now}
}

type session struct {
	config aws.Config
	until  time.Time
}

// Config is the SDK's configuration for an identity: its region, its credentials, and a
// client whose connections are under the egress policy and whose answers are bounded. A
// request is sent once: a run measures again after an error. Errors: ErrNoRegion,
// ErrBadRegion, or ErrNoCredentials of providerhttp for files that can't be used.
func (s *Sessions) Config(ctx context.Context, id Identity) (aws.Config, error) {
	if kept, ok := s.kept.Get(id); ok && s.now().Before(kept.(session).until) {
		return kept.(session).config, nil
	}
	c, err := s.read(ctx, id)
	if err != nil {
		return aws.Config{}, err
	}
	s.kept.Add(id, session{config: c, until: s.now().Add(sessionLife)})
	return c, nil
}

func (s *Sessions) read(ctx context.Context, id Identity) (aws.Config, error) {
	options := append([]func(*config.LoadOptions) error{}, s.load...)
	if id.Region != "" {
		options = append(options, config.WithRegion(id.Region))
	}
	if id.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(id.Profile))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, providerhttp.NoCredentials("no AWS configuration", err)
	}
	switch {
	case c.Region == "":
		return aws.Config{}, ErrNoRegion
	case !regionForm.MatchString(c.Region):
		return aws.Config{}, ErrBadRegion
	}
	c.HTTPClient = s.transports.Guarded()
	c.Logger = logging.Nop{} // what matters is in the errors
	c.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if id.RoleARN != "" {
		assume := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(c), id.RoleARN, func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = roleSession })
		c.Credentials = aws.NewCredentialsCache(assume)
	}
	return c, nil
}

// retrieve gives credentials that hold. Errors: ErrNoCredentials of providerhttp.
func retrieve(ctx context.Context, c aws.Config) (aws.Credentials, error) {
	if c.Credentials == nil {
		return aws.Credentials{}, providerhttp.NoCredentials(noCredentials, errors.New("none are configured"))
	}
	credentials, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, providerhttp.NoCredentials(noCredentials, err)
	}
	return credentials, nil
}

const noCredentials = "no AWS credentials"

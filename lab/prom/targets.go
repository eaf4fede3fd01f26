package prom

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// Target is one address that exports metrics.
type Target struct {
	// URL is where the metrics are; without a path, /metrics is meant.
	URL string
	// Labels are put on every series of the target, besides "instance", its
	// host and port, and "job", which is "targets" unless it is named here.
	Labels map[string]string
}

// ErrTarget says that a target can't be used.
var ErrTarget = errors.New("the target can't be scraped")

// SetTargets replaces the static targets. Series of those that are gone are
// marked stale two intervals later, as Prometheus does. A target that can't be
// used is an ErrTarget that names it, and nothing changes.
func (s *Server) SetTargets(targets []Target) error {
	groups := []*targetgroup.Group{}
	for i, t := range targets {
		group, err := t.group(i)
		if err != nil {
			return err
		}
		groups = append(groups, group)
	}
	s.setGroups(targetsJob, groups)
	return nil
}

func (t Target) group(i int) (*targetgroup.Group, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%w: %q is not of the form http://host:port/metrics", ErrTarget, t.URL)
	}
	set := model.LabelSet{
		model.AddressLabel: model.LabelValue(u.Host),
		model.SchemeLabel:  model.LabelValue(u.Scheme),
	}
	if u.Path != "" && u.Path != "/" {
		set[model.MetricsPathLabel] = model.LabelValue(u.Path)
	}
	for name, values := range u.Query() {
		set[model.LabelName(model.ParamLabelPrefix+name)] = model.LabelValue(values[0])
	}
	labels := model.LabelSet{}
	for name, value := range t.Labels {
		labels[model.LabelName(name)] = model.LabelValue(value)
	}
	if err := labels.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTarget, t.URL, err)
	}
	return &targetgroup.Group{Source: fmt.Sprint(i), Targets: []model.LabelSet{set}, Labels: labels}, nil
}

// setGroups replaces what a job scrapes and wakes Run.
func (s *Server) setGroups(job string, groups []*targetgroup.Group) {
	s.mu.Lock()
	s.groups[job] = groups
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Server) targetGroups() map[string][]*targetgroup.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.groups)
}

// TargetHealth is how the last scrape of a target went.
type TargetHealth struct {
	Job, URL string
	// Health is "unknown" before the first scrape, then "up" or "down".
	Health     string
	LastError  string
	LastScrape time.Time
}

// Health lists the active targets, sorted by job and URL.
func (s *Server) Health() []TargetHealth {
	var list []TargetHealth
	active := s.scraper.TargetsActive()
	for _, job := range slices.Sorted(maps.Keys(active)) {
		for _, t := range active[job] {
			h := TargetHealth{Job: job, URL: t.URL().String(), Health: string(t.Health()), LastScrape: t.LastScrape()}
			if err := t.LastError(); err != nil {
				h.LastError = err.Error()
			}
			list = append(list, h)
		}
	}
	slices.SortStableFunc(list, func(a, b TargetHealth) int { return strings.Compare(a.Job+" "+a.URL, b.Job+" "+b.URL) })
	return list
}

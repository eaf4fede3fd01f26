package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/pushback-dev/pushback/lab/httpmetrics"
)

const maxConfigBody = 1 << 20 // bytes

// state is what GET /admin/config answers: the table being served.
type state struct {
	HTTPRoute string   `json:"httpRoute,omitempty"`
	Hostnames []string `json:"hostnames,omitempty"`
	Rules     []rule   `json:"rules"`
}

type rule struct {
	Name     string    `json:"name"`
	Matches  []string  `json:"matches"`
	Refused  string    `json:"refused,omitempty"`
	Backends []backend `json:"backends"`
	Mirrors  []mirror  `json:"mirrors,omitempty"`
}

// mirror gets a copy of Part of every Of requests.
type mirror struct {
	Name      string   `json:"name"`
	Part      int64    `json:"part"`
	Of        int64    `json:"of"`
	Endpoints []string `json:"endpoints"`
}

type backend struct {
	Name      string   `json:"name"`
	Weight    int64    `json:"weight"`
	Canary    bool     `json:"canary,omitempty"`
	Invalid   string   `json:"invalid,omitempty"`
	Endpoints []string `json:"endpoints"`
}

// AdminHandler serves
//
//	GET  /admin/config   the routes being served, with weights and endpoints
//	POST /admin/config   a Config that replaces them (also PUT)
//	GET  /metrics        Prometheus metrics
//	GET  /-/ready        200 once there are routes, 503 before
//
// httpRoute, "namespace/name", says that the routes come from there; a POST is
// then refused with 409.
func (g *Gateway) AdminHandler(httpRoute string) http.Handler {
	mux := http.NewServeMux()
	change := g.changeConfig
	if httpRoute != "" {
		change = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "this gateway obeys the HTTPRoute "+httpRoute+"; change that instead", http.StatusConflict)
		}
	}
	show := func(w http.ResponseWriter, _ *http.Request) { g.showConfig(w, httpRoute) }
	mux.HandleFunc("GET /admin/config", show)
	mux.HandleFunc("POST /admin/config", change)
	mux.HandleFunc("PUT /admin/config", change)
	mux.Handle("GET /metrics", httpmetrics.Handler(g.registry))
	mux.HandleFunc("GET /-/ready", g.ready)
	return mux
}

func (g *Gateway) ready(w http.ResponseWriter, _ *http.Request) {
	if g.Table() == nil {
		http.Error(w, "no routes are loaded yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}

func (g *Gateway) changeConfig(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxConfigBody))
	if err != nil {
		http.Error(w, "read the configuration: "+err.Error(), http.StatusBadRequest)
		return
	}
	config, err := ParseConfig(body)
	if err == nil {
		err = g.Configure(config)
	}
	if err != nil {
		http.Error(w, "nothing was changed: "+err.Error(), http.StatusBadRequest)
		return
	}
	g.showConfig(w, "")
}

// Configure serves a Config from now on. One that can't be used is an ErrConfig
// and changes nothing.
func (g *Gateway) Configure(c Config) error {
	t, err := c.table()
	if err != nil {
		return err
	}
	if err := g.Serve(t); err != nil {
		return errors.Join(ErrConfig, err)
	}
	return nil
}

func (g *Gateway) showConfig(w http.ResponseWriter, httpRoute string) {
	s := state{HTTPRoute: httpRoute, Rules: []rule{}}
	if t := g.Table(); t != nil {
		s.Hostnames = t.Hostnames()
		for _, r := range t.Rules() {
			shown := rule{Name: r.Name, Refused: r.Refused, Matches: []string{}, Backends: []backend{}}
			for _, m := range r.Matches {
				shown.Matches = append(shown.Matches, m.String())
			}
			for _, b := range r.Backends {
				shown.Backends = append(shown.Backends, backend{b.Name, b.Weight, b.Canary, b.Invalid, b.Endpoints})
			}
			for _, m := range r.Mirrors {
				shown.Mirrors = append(shown.Mirrors, mirror{m.Backend.Name, m.Part, m.Of, m.Backend.Endpoints})
			}
			s.Rules = append(s.Rules, shown)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		g.log.Debug("the admin client went away", "error", fmt.Sprint(err))
	}
}

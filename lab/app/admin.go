package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/pushback-dev/pushback/lab/exact"
)

// rateBody is the JSON of /admin/errors. Rate is a pointer so that a body
// without it is refused and not read as 0.
type rateBody struct {
	Rate *float64 `json:"rate"`
}

const maxRateBody = 4096 // bytes

func (a *App) showErrors(w http.ResponseWriter, _ *http.Request) {
	rate := a.errors.Rate()
	w.Header().Set("Content-Type", "application/json")
	// The client hanging up is the only way in which this fails.
	_ = json.NewEncoder(w).Encode(rateBody{Rate: &rate})
}

func (a *App) setErrors(w http.ResponseWriter, r *http.Request) {
	rate, err := readRate(r)
	if err == nil {
		err = a.errors.Set(rate)
	}
	if err != nil {
		http.Error(w, "error rate not changed: "+err.Error(), http.StatusBadRequest)
		return
	}
	a.showErrors(w, r)
}

func readRate(r *http.Request) (float64, error) {
	if query := r.URL.Query(); query.Has("rate") {
		return exact.ParseRate(query.Get("rate"))
	}
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxRateBody))
	decoder.DisallowUnknownFields()
	var body rateBody
	if err := decoder.Decode(&body); err != nil {
		return 0, fmt.Errorf(`send ?rate=0.5 or the JSON {"rate":0.5}: %w`, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return 0, errors.New(`send one JSON object, {"rate":0.5}, and nothing after it`)
	}
	if body.Rate == nil {
		return 0, errors.New(`the JSON has no "rate"; send {"rate":0.5}`)
	}
	return *body.Rate, nil
}

// refuseMethod keeps other methods from falling through to the service itself.
func refuseMethod(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", "GET, POST, PUT")
	http.Error(w, "use GET to see the error rate, POST or PUT to change it", http.StatusMethodNotAllowed)
}

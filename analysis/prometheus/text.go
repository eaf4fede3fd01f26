package prometheus

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/common/model"
)

// textClient keeps an answer of the type string, which Prometheus gives and which
// the API client refuses.
type textClient struct {
	api.Client
	text *model.String
}

// Do implements api.Client.
func (c *textClient) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	resp, body, err := c.Client.Do(ctx, req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, body, err
	}
	var answer struct {
		Status string `json:"status"`
		Data   struct {
			Type   string          `json:"resultType"`
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Status != "success" || answer.Data.Type != model.ValString.String() {
		return resp, body, nil // the API client decodes it, or says what is wrong
	}
	var text model.String
	if err := json.Unmarshal(answer.Data.Result, &text); err != nil {
		return resp, body, err
	}
	c.text = &text
	return resp, body, nil
}

package providerhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ErrNoGraphQL says that an answer is not one of GraphQL over HTTP.
var ErrNoGraphQL = errors.New("the answer is not GraphQL's")

// GraphQL posts a query with its variables, and reads the data of the answer into out.
// Data of null leaves out as it is. Errors: those of Fetch; ErrNoGraphQL; and the
// server's own, even where it sends data with them, for part of an answer is none.
func GraphQL(ctx context.Context, client *http.Client, target *url.URL, query string, variables map[string]any, out any) error {
	question, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(question))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	body, err := Fetch(client, req)
	if err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("%w: %w", ErrNoGraphQL, err)
	}
	if len(answer.Errors) > 0 {
		messages := make([]string, len(answer.Errors))
		for i, e := range answer.Errors {
			messages[i] = e.Message
		}
		return fmt.Errorf("the query failed: %s", strings.Join(messages, "; "))
	}
	if answer.Data == nil {
		return fmt.Errorf("%w: it has no data", ErrNoGraphQL)
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fmt.Errorf("%w: %w", ErrNoGraphQL, err)
	}
	return nil
}

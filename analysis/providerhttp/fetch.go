package providerhttp

import (
	"fmt"
	"io"
	"net/http"
)

// StatusError is an answer that is no success.
type StatusError struct {
	// Code is the HTTP status, 300 to 599 in practice.
	Code int
	// Body is all that the server says. It may echo secrets.
	Body string
}

// Error has the server's words, which PlainError redacts and cuts short.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answers %d %s", e.Code, http.StatusText(e.Code))
	if e.Body == "" {
		return text
	}
	return text + ": " + e.Body
}

// Fetch sends a request and reads the whole answer, at most 10 MiB of it. Errors: those
// of the client, ErrTooLarge, and a *StatusError for any status but 2xx. They are for
// PlainError, not for people: they may show the URL and echo secrets.
func Fetch(client *http.Client, req *http.Request) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &StatusError{Code: resp.StatusCode, Body: string(body)}
	}
	return body, nil
}

// Package awstest checks signatures as AWS does, for fake servers, and is an STS that
// lets roles be assumed. It imports no provider.
package awstest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// ErrSignature says that a request isn't signed as it should be.
var ErrSignature = errors.New("the signature is wrong")

// Verify signs what a server got, as far as the request says that it is signed, and
// compares. The body can be read again.
func Verify(r *http.Request, c aws.Credentials, service, region string) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return fmt.Errorf("%w: X-Amz-Date: %w", ErrSignature, err)
	}
	if age := time.Since(at); age.Abs() > 5*time.Minute {
		return fmt.Errorf("%w: it is %s old", ErrSignature, age)
	}
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil {
		return err
	}
	_, list, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	for _, name := range strings.Split(list, ";") {
		if values := r.Header.Values(name); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
		if name == "content-length" {
			again.ContentLength = r.ContentLength
		}
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), c, again, hex.EncodeToString(sum[:]), service, region, at); err != nil {
		return err
	}
	if got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want {
		return fmt.Errorf("%w: got %s, want %s", ErrSignature, got, want)
	}
	return nil
}

// Role is who is at the other end of STS: it hands out Credentials for ARN to who signs
// with Caller.
type Role struct {
	ARN         string
	Caller      aws.Credentials
	Region      string
	Credentials aws.Credentials
}

// Serve is an STS for one role.
func (role Role) Serve(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		if err := Verify(r, role.Caller, "sts", role.Region); err != nil {
			t.Errorf("STS: %v", err)
		}
		if r.FormValue("Action") != "AssumeRole" || r.FormValue("RoleArn") != role.ARN {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not authorized to perform sts:AssumeRole</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>`, role.Credentials.AccessKeyID, role.Credentials.SecretAccessKey, role.Credentials.SessionToken, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(s.Close)
	return s
}

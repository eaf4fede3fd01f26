package cloudwatch

import (
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pushback-dev/pushback/analysis/providerhttp"
)

// protocolType is the type of all that CloudWatch says.
const protocolType = "application/cbor"

// foreign makes errors of answers that are not CloudWatch's, such as a proxy's, with
// their words. The SDK would take their bytes for its own.
type foreign struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (f foreign) Do(req *http.Request) (*http.Response, error) {
	resp, err := f.next.Do(req)
	if err != nil || isProtocol(resp) {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return nil, &providerhttp.StatusError{Code: resp.StatusCode, Body: string(body)}
}

func isProtocol(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && media == protocolType
}

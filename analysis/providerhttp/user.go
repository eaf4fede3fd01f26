package providerhttp

import (
	"net/http"
	"net/url"
)

// UserOf signs requests with the user and the password in an address, by HTTP's basic
// authentication; with none it adds nothing. Password is for a Redactor, and empty when
// there is none.
func UserOf(origin *url.URL) (sign Sign, password string) {
	if origin.User == nil {
		return nil, ""
	}
	password, _ = origin.User.Password()
	return func(req *http.Request) error {
		req.SetBasicAuth(origin.User.Username(), password)
		return nil
	}, password
}

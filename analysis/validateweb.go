package analysis

import (
	"slices"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var webMethods = []string{"", "GET", "POST", "PUT"}

func checkWeb(p v1alpha1.WebMetric, path string, c completeness, ps *problems) {
	checkURL(p.URL, path+".url", c, ps)
	if !slices.Contains(webMethods, p.Method) {
		ps.add(path+".method", "the method %s is none of GET, POST and PUT", p.Method)
	}
	if (p.Body != "" || p.JSONBody != nil) && (p.Method == "" || p.Method == "GET") {
		ps.add(path+".method", "a body is sent by the methods POST and PUT alone")
	}
	if p.Body != "" && p.JSONBody != nil {
		ps.add(path+".jsonBody", "body and jsonBody contradict each other: leave one out")
	}
	if p.TimeoutSeconds != 0 { // 0 is the default of 10
		checkTimeout(p.TimeoutSeconds, path+".timeoutSeconds", ps)
	}
	checkJSONPath(p.JSONPath, path+".jsonPath", c, ps)
	checkRequest(p.Headers, p.Authentication, path, c, ps)
	if p.Authentication != nil && p.Authentication.Sigv4 != nil {
		ps.add(path+".authentication.sigv4", "a web metric signs nothing for AWS: prometheus and cloudWatch do")
	}
}

// checkJSONPath looks at the braces alone: the path is parsed by the provider.
func checkJSONPath(text, path string, c completeness, ps *problems) {
	text = strings.TrimSpace(text)
	if text == "" || c == partial && placeholder.MatchString(text) {
		return
	}
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		ps.add(path, "the jsonPath wants to be in braces, such as {$.data.ok}: text around it would be the result")
	}
}

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/analysis/datadog"
	"github.com/pushback-dev/pushback/analysis/providersecret"
)

func TestSharedSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("pushback-system\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ set, file, want string }{
		"set":              {"metrics", file, "metrics"},
		"the pod's own":    {"", file, "pushback-system"},
		"not in a pod":     {"", file + ".absent", ""},
		"none":             {"-", file, ""},
		"set and no pod's": {"metrics", file + ".absent", "metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sharedSecrets(tc.set, tc.file)
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	if _, err := sharedSecrets("", filepath.Dir(file)); err == nil {
		t.Error("a file that can't be read counts as no pod")
	}
}

func TestSecretReader(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "datadog"}, Data: map[string][]byte{"api-key": []byte("k")},
	}).WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if key.Name == "broken" {
			return broken
		}
		return c.Get(ctx, key, obj, opts...)
	}}).Build()
	for name, want := range map[string]error{"datadog": nil, "absent": providersecret.ErrNotFound, "broken": broken} {
		data, err := secretReader(c)(context.Background(), "shop", name)
		if !errors.Is(err, want) || (want == nil) != (string(data["api-key"]) == "k") {
			t.Errorf("%s: got %v, %v; want %v", name, data, err, want)
		}
	}
}

func TestDatadogKeys(t *testing.T) {
	env := map[string]string{"DD_ADDRESS": "http://dd", "DD_API_KEY": "a", "DD_APP_KEY": "b"}
	if got, want := datadogKeys(func(k string) string { return env[k] }), (datadog.Credentials{Address: "http://dd", APIKey: "a", AppKey: "b"}); got != want {
		t.Errorf("got %v", got)
	}
}

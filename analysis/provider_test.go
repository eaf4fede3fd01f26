package analysis

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Each field of MetricProvider has a name here, so that none can be given and ignored.
func TestProviderNameKnowsEveryField(t *testing.T) {
	typ := reflect.TypeFor[v1alpha1.MetricProvider]()
	for i := range typ.NumField() {
		want, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		var p v1alpha1.MetricProvider
		field := reflect.ValueOf(&p).Elem().Field(i)
		if field.Kind() == reflect.Map {
			field.Set(reflect.ValueOf(map[string]runtime.RawExtension{"x": {}}))
		} else {
			field.Set(reflect.New(field.Type().Elem()))
		}
		if got, err := ProviderName(p); err != nil || got != want {
			t.Errorf("%s: got %q, %v", want, got, err)
		}
	}
	if _, err := ProviderName(v1alpha1.MetricProvider{}); !errors.Is(err, ErrProvider) {
		t.Errorf("got %v, want ErrProvider", err)
	}
}

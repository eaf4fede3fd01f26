package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// locate finds the value that makes a document undecodable. Decoders name Go
// types, or (types that read themselves) nothing at all; people need the path.
// The message is empty when no single value is to blame.
func locate(object any, data []byte) (field, message string) {
	if !json.Valid(data) {
		return "", ""
	}
	return locateIn(reflect.TypeOf(object).Elem(), "", data)
}

func locateIn(t reflect.Type, path string, data []byte) (field, message string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(t).Interface())
	if err == nil || isNull(data) {
		return "", ""
	}
	switch {
	case t.Kind() == reflect.Struct && !readsItself(t):
		if field, message = locateInStruct(t, path, data); message != "" {
			return field, message
		}
	case t.Kind() == reflect.Slice && !readsItself(t):
		var items []json.RawMessage
		if json.Unmarshal(data, &items) == nil {
			for i, item := range items {
				if field, message = locateIn(t.Elem(), fmt.Sprintf("%s[%d]", path, i), item); message != "" {
					return field, message
				}
			}
		}
	case t.Kind() == reflect.Map && !readsItself(t):
		if field, message = locateInMap(t, path, data); message != "" {
			return field, message
		}
	}
	return path, wrongType(t, data, err)
}

func locateInStruct(t reflect.Type, path string, data []byte) (field, message string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return "", ""
	}
	for i := range t.NumField() {
		f := t.Field(i)
		suffix := fieldSuffix(f)
		value := data // an embedded struct reads the same object
		if suffix != "" {
			value = values[suffix[1:]]
		}
		if len(value) == 0 || !f.IsExported() {
			continue
		}
		if field, message = locateIn(f.Type, strings.TrimPrefix(path+suffix, "."), value); message != "" {
			return field, message
		}
	}
	return "", ""
}

func locateInMap(t reflect.Type, path string, data []byte) (field, message string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return "", ""
	}
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if field, message = locateIn(t.Elem(), fmt.Sprintf("%s[%s]", path, key), values[key]); message != "" {
			return field, message
		}
	}
	return "", ""
}

// readsItself says that a type has its own way from JSON, so that its fields aren't ours to visit.
func readsItself(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

// wrongType says what was found and what is wanted, never the value, which may
// be a password.
func wrongType(t reflect.Type, data []byte, err error) string {
	found := jsonType(data)
	switch t.Kind() {
	case reflect.String:
		return fmt.Sprintf("%s is here and text is wanted: put it in quotes", found)
	case reflect.Bool:
		return fmt.Sprintf("%s is here and true or false is wanted", found)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("%s is here and a whole number of at most %d bits is wanted", found, t.Bits())
	case reflect.Slice:
		return fmt.Sprintf("%s is here and a list is wanted", found)
	}
	if readsItself(t) {
		return fmt.Sprintf("%s is here and can't be read: %v", found, err)
	}
	return fmt.Sprintf("%s is here and an object is wanted", found)
}

func jsonType(data []byte) string {
	switch bytes.TrimSpace(data)[0] { // data is valid JSON
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

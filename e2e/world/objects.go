package world

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

func newObject() *unstructured.Unstructured { return &unstructured.Unstructured{} }

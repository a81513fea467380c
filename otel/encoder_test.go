package otel_test

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// encoder writes attributes without what all have.
type encoder struct{}

func (encoder) ID() attribute.EncoderID { return attribute.EncoderID{} }

func (encoder) Encode(i attribute.Iterator) string {
	var all []string
	for i.Next() {
		a := i.Attribute()
		if a.Key != "messaging.system" && a.Key != "messaging.operation.type" {
			all = append(all, strings.TrimPrefix(string(a.Key), "messaging.")+"="+a.Value.Emit())
		}
	}
	return strings.Join(all, " ")
}

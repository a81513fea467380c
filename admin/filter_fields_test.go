package admin

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule: a filter with any condition does not count as a filter for all jobs. Otherwise a change would lose its condition,
// and an export of some jobs would be one of all.
func TestFilterOfEachField(t *testing.T) {
	tested := 0
	var each func(of reflect.Value, f *Filter)
	each = func(of reflect.Value, f *Filter) {
		for i := range of.NumField() {
			name, field := of.Type().Field(i), of.Field(i)
			if name.Anonymous {
				each(field, f)
				continue
			}
			switch {
			case name.Type == reflect.TypeFor[time.Time]():
				field.Set(reflect.ValueOf(time.Unix(1, 0)))
			case field.Kind() == reflect.Slice:
				field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			case field.Kind() == reflect.Bool:
				field.SetBool(true)
			default:
				field.SetString("x")
			}
			sorts := name.Name == "Order" || name.Name == "Newest"
			require.Equal(t, sorts, f.isZero(), name.Name)
			field.SetZero()
			tested++
		}
	}
	var f Filter
	each(reflect.ValueOf(&f).Elem(), &f)
	require.True(t, f.isZero())
	require.Greater(t, tested, 15)
}

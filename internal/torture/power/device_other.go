//go:build !linux

package power

import (
	"errors"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func deviceMissing() string { return "needs Linux" }

func prepareDevice(*harness.Env) (func(*harness.Try) error, error) {
	return nil, errors.New("needs Linux")
}

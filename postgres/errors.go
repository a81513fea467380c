package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gopawl/pawl"
)

// Errors of the server and of the schema, for errors.Is. The error that matches has the words of
// the server too.
var (
	// ErrUnavailable says that the server could not be reached within Options.Timeout, or that
	// it refused the connection. Nothing was changed. The next call tries again.
	ErrUnavailable = errors.New("the server is not available")

	// ErrPermission says that the role lacks a right. Give it USAGE and CREATE on the schema,
	// or CREATE on the database where the schema does not exist yet.
	ErrPermission = errors.New("the role lacks a right")

	// ErrReadOnly says that the server is a standby, or that its transactions are read-only.
	// Name the primary, or add target_session_attrs=read-write to the connection string.
	ErrReadOnly = errors.New("the server is read-only")

	// ErrOlderFormat says that the schema has an older format than this build writes. A schema
	// of a newer format gives pawl.ErrNewerFormat.
	ErrOlderFormat = errors.New("the schema has an older format than this build writes")

	// errLost says that another process took the leases of this one back.
	errLost = errors.New("the process lost its leases")

	// errRace says that the transaction had no effect, and may have one when it runs again.
	errRace = errors.New("the transaction has to run again")
)

// explain gives an error of the server its sentinel.
func explain(err error) error {
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server):
		switch code := server.Code; {
		case code == "42501" || code[:2] == "28":
			return fmt.Errorf("%w: %w", ErrPermission, err)
		case code == "25006":
			return fmt.Errorf("%w: %w", ErrReadOnly, err)
		case isOutage(code):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		case code[:2] == "XX":
			return fmt.Errorf("%w: %w", pawl.ErrCorrupt, err)
		}
	case errors.As(err, &connect):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// isOutage reports whether a server with this error serves nobody: it starts, stops, or has no
// connection left.
func isOutage(code string) bool {
	switch code[:2] {
	case "08", "53", "57":
		return code != "53100" && code != "57014" // a full disk and a canceled statement are of one transaction
	}
	return false
}

// isRace reports whether a transaction may succeed when it runs again: somebody else was first,
// or it was the victim of a deadlock.
func isRace(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "23505", "40001", "40P01":
			return true
		}
	}
	return errors.Is(err, errRace)
}

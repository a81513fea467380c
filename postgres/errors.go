package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Errors of the server and of the schema. Match them with errors.Is. The returned error also
// contains the message of the server.
var (
	// ErrUnavailable says that the server could not be reached within Options.Timeout, or that
	// it refused the connection. Nothing was changed. The next call tries again.
	ErrUnavailable = driver.NewSentinel("postgres_unavailable", "the server is not available")

	// ErrPermission says that the role lacks a right. Grant it USAGE and CREATE on the schema, or
	// CREATE on the database if the schema does not exist yet.
	ErrPermission = driver.NewSentinel("postgres_permission", "the role lacks a right")

	// ErrReadOnly says that the server is a standby, or that its transactions are read-only.
	// Name the primary, or add target_session_attrs=read-write to the connection string.
	ErrReadOnly = driver.NewSentinel("postgres_read_only", "the server is read-only")

	// ErrOlderFormat says that the schema has an older format than this build writes. For a newer
	// format the error is pawl.ErrNewerFormat.
	ErrOlderFormat = driver.NewSentinel("postgres_older_format", "the schema has an older format than this build writes")

	// ErrNotQueue says that the schema has no queue, and Options.Existing was set.
	ErrNotQueue = driver.NewSentinel("postgres_not_queue", "there is no queue in the schema")

	// errLost says that another process took back the leases of this process.
	errLost = errors.New("the process lost its leases")

	// errRace says that the transaction had no effect, and may succeed when it runs again.
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
	case errors.As(err, &connect), isBroken(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// isBroken reports whether an error comes from the connection, or from a server that is out of
// service, and not from the request.
func isBroken(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return isOutage(server.Code)
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// isOutage reports whether a server with this error is out of service: it starts, stops, has no
// connection left, or does not end a transaction that is in the way.
func isOutage(code string) bool {
	switch code[:2] {
	case "08", "53", "57":
		return code != "53100" && code != "57014" // a full disk and a canceled statement concern one transaction
	}
	return code == "55P03"
}

// isRace reports whether a transaction may succeed when it runs again: another transaction was
// first, or this one was the victim of a deadlock.
func isRace(err error) bool {
	switch codeOf(err) {
	case "23505", "40001", "40P01":
		return true
	}
	return errors.Is(err, errRace)
}

// isLocked reports whether a transaction waited too long for another one.
func isLocked(err error) bool { return codeOf(err) == "55P03" }

// isReadOnly reports whether the server is not the primary.
func isReadOnly(err error) bool { return codeOf(err) == "25006" }

// codeOf returns the code of an error of the server, "" for another error.
func codeOf(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

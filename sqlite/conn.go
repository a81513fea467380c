package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// conn runs statements: a connection of the queue, or a transaction of the app. The arguments and the
// values of a row are int64, []byte and nil.
type conn interface {
	// exec returns how many rows the statement changed.
	exec(statement string, args ...driver.Value) (int64, error)

	// query calls row for each row. The values stay valid after the call, but the slice does not.
	query(statement string, row func(v []driver.Value) error, args ...driver.Value) error
}

// own is a connection of the queue, which prepares each statement once. One goroutine at a time
// uses it.
type own struct {
	dc    driver.Conn
	stmts map[string]stmt
}

// stmt is a statement of the driver.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// open opens a file, and runs a script of pragmas.
func open(file string, wait time.Duration, pragmas string) (*own, error) {
	dc, err := new(sqlite.Driver).Open(address(file, ""))
	if err != nil {
		return nil, err
	}
	c := &own{dc: dc, stmts: make(map[string]stmt)}
	if _, err := c.exec(fmt.Sprintf("PRAGMA busy_timeout = %d;", wait.Milliseconds()) + pragmas); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// address returns the data source name of a file.
func address(file, params string) string {
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // before the drive of Windows
	}
	name := "file://" + (&url.URL{Path: path}).EscapedPath()
	if params != "" {
		name += "?" + params
	}
	return name
}

func (c *own) stmt(statement string) (stmt, error) {
	if s := c.stmts[statement]; s != nil {
		return s, nil
	}
	prepared, err := c.dc.Prepare(statement)
	if err != nil {
		return nil, err
	}
	s := prepared.(stmt)
	c.stmts[statement] = s
	return s, nil
}

// ordinals returns arguments as the driver takes them.
func ordinals(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return all
}

func (c *own) exec(statement string, args ...driver.Value) (int64, error) {
	s, err := c.stmt(statement)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), ordinals(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (c *own) query(statement string, row func(v []driver.Value) error, args ...driver.Value) error {
	s, err := c.stmt(statement)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), ordinals(args))
	if err != nil {
		return err
	}
	v := make([]driver.Value, len(rows.Columns()))
	for {
		if err = rows.Next(v); err != nil {
			break
		}
		if err = row(v); err != nil {
			break
		}
	}
	if isEnd(err) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

func (c *own) close() {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	_ = c.dc.Close() // it has no unwritten data
}

// appConn is a transaction of the app.
type appConn struct {
	ctx context.Context
	tx  *sql.Tx
}

func (c appConn) exec(statement string, args ...driver.Value) (int64, error) {
	r, err := c.tx.ExecContext(c.ctx, statement, anys(args)...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (c appConn) query(statement string, row func(v []driver.Value) error, args ...driver.Value) error {
	rows, err := c.tx.QueryContext(c.ctx, statement, anys(args)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	v, fields := make([]driver.Value, len(names)), make([]any, len(names))
	for i := range v {
		fields[i] = (*any)(&v[i])
	}
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return err
		}
		if err := row(v); err != nil {
			return err
		}
	}
	return rows.Err()
}

func anys(args []driver.Value) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = arg
	}
	return all
}

// number returns an integer of a row, 0 for NULL.
func number(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// bytesOf returns a blob of a row, nil for NULL and for an empty one.
func bytesOf(v driver.Value) []byte {
	switch b := v.(type) {
	case []byte:
		if len(b) > 0 {
			return b
		}
	case string:
		return []byte(b)
	}
	return nil
}

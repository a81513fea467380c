package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		engine.Register(scheme, func(ctx context.Context, url string) (engine.Queue, error) {
			q, err := Open(ctx, url, nil)
			if err != nil {
				return nil, err // not a nil *Queue in an interface
			}
			return q, nil
		})
	}
}

// schemaOf moves the schema from a connection string to a copy of the options. The server would
// not accept the parameter.
func schemaOf(config *pgxpool.Config, opts *Options) (*Options, error) {
	params := config.ConnConfig.RuntimeParams
	schema, given := params["schema"]
	if !given {
		return opts, nil
	}
	delete(params, "schema")
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Schema != "" && o.Schema != schema {
		return nil, &pawl.InvalidError{Field: "Schema", Reason: fmt.Sprintf("the options name %.64q, and the connection string %.64q", o.Schema, schema)}
	}
	o.Schema = schema
	return &o, nil
}

// parseReason returns what pgx says about a connection string that it cannot parse. It omits what
// pgx quotes, since that may include the password.
func parseReason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	text, _, _ = strings.Cut(text, " (")
	if strings.ContainsAny(text, "`\":") {
		return "it cannot be parsed"
	}
	return text
}

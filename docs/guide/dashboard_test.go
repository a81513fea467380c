package guide

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dashboard"
)

// login stands for the app's own authentication.
func login(next http.Handler) http.Handler { return next }

type account struct{ Name, Role string }

// accountOf stands for the session that login has put into the request.
func accountOf(r *http.Request) account {
	return account{"ada", r.Header.Get("Role")}
}

func mountOps(mux *http.ServeMux, q admin.Store) (*dashboard.Dashboard, error) {
	d, err := dashboard.New(admin.Of(q), &dashboard.Options{
		Authorize: func(r *http.Request, a dashboard.Action) bool {
			switch accountOf(r).Role {
			case "operator":
				return true
			case "support":
				return a == dashboard.View || a == dashboard.Retry
			}
			return false
		},
		User:  func(r *http.Request) string { return accountOf(r).Name }, // for the log
		Hosts: []string{"app.example.com"},
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("/ops/", login(http.StripPrefix("/ops", d)))
	return d, nil
}

// Rule: the dashboard of the page lets operators do everything, support retry, and others nothing.
func TestDashboardPage(t *testing.T) {
	q, err := bolt.Open(filepath.Join(t.TempDir(), "app.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	mux := http.NewServeMux()
	d, err := mountOps(mux, q)
	require.NoError(t, err)
	status := func(role, path string) int {
		r := httptest.NewRequest("GET", "https://app.example.com/ops/"+path, nil)
		r.Header.Set("Role", role)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 200, status("operator", "delete?select=all&state=dead"))
	require.Equal(t, 200, status("support", "retry?select=all&state=dead"))
	require.Equal(t, 403, status("support", "delete?select=all&state=dead"))
	require.Equal(t, 403, status("", ""))
	require.NoError(t, d.Close())
	require.NoError(t, q.Close())
}

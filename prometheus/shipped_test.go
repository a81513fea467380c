package prometheus_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/metrics"
)

// names returns the names of all series that a queue can have: those of one to which every event has
// happened.
func names(t *testing.T) map[string]bool {
	t.Helper()
	var tally metrics.Tally
	event := func(e pawl.Event) {
		e.Job = &pawl.Envelope{Queue: "q", Kind: "k", BackoffSince: time.Unix(1, 0), Death: &pawl.Death{Reason: pawl.Reason(e.Cause)}}
		driver.CountEvent(&tally, e)
	}
	for _, kind := range []pawl.EventType{
		pawl.EventFetched, pawl.EventSucceeded, pawl.EventSkipped, pawl.EventRetried, pawl.EventReleased, pawl.EventSnoozed,
		pawl.EventReaped, pawl.EventRecovered,
	} {
		event(pawl.Event{Type: kind, TimedOut: true})
	}
	for _, reason := range []pawl.Reason{
		pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonPoison, pawl.ReasonDeadline, pawl.ReasonCancelled,
		pawl.ReasonSignature, pawl.ReasonPayload,
	} {
		event(pawl.Event{Type: pawl.EventDied, Cause: string(reason)})
	}
	q := source{stats: pawl.Stats{Queues: []pawl.QueueStats{{Name: "q"}}, Storage: pawl.Storage{Size: 1}}}
	families, err := metrics.Families(t.Context(), q, &tally)
	require.NoError(t, err)
	all := make(map[string]bool)
	for _, f := range families {
		if all[f.Name] = true; f.Type == "histogram" {
			delete(all, f.Name)
			all[f.Name+"_bucket"], all[f.Name+"_sum"], all[f.Name+"_count"] = true, true, true
		}
	}
	return all
}

var name = regexp.MustCompile(`\bpawl_\w+`)

// requireNames requires that every metric of an expression exists.
func requireNames(t *testing.T, all map[string]bool, expression string) {
	t.Helper()
	found := name.FindAllString(expression, -1)
	require.NotEmpty(t, found, expression)
	for _, n := range found {
		require.True(t, all[n], "no queue has the metric %s, which is in: %s", n, expression)
	}
}

type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// Rule: every metric that an alert names exists, every alert says what happened and what to do, and
// each has a case that fires it.
func TestRules(t *testing.T) {
	var shipped rules
	readYAML(t, "rules.yml", &shipped)
	cases, err := os.ReadFile(filepath.Join("testdata", "rules_test.yml"))
	require.NoError(t, err)
	all := names(t)
	for _, group := range shipped.Groups {
		for _, r := range group.Rules {
			requireNames(t, all, r.Expr)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.NotEmpty(t, r.Annotations["action"], r.Alert)
			require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
			require.Contains(t, string(cases), "alertname: "+r.Alert+"\n")
		}
	}
}

// Rule: Prometheus accepts the rules, and each alert fires for the series of its case and not for
// their neighbors.
func TestRulesInPrometheus(t *testing.T) {
	promtool(t, "check", "rules", "rules.yml")
	promtool(t, "test", "rules", filepath.Join("testdata", "rules_test.yml"))
}

// Rule: every metric that the board names exists, every panel says what it shows, and Prometheus reads
// every expression.
func TestBoard(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	variables := make(map[string]bool)
	for _, v := range board.Templating.List {
		variables[v.Name] = true
	}
	for _, v := range regexp.MustCompile(`\$\{?([a-z]+)\b`).FindAllStringSubmatch(string(text), -1) {
		require.True(t, variables[v[1]], "the board has no variable %s", v[1])
	}
	all := names(t)
	var expressions []string
	for _, panel := range board.Panels {
		require.NotEmpty(t, panel.Description, panel.Title)
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			requireNames(t, all, target.Expr)
			expressions = append(expressions, target.Expr)
		}
	}
	require.NotEmpty(t, expressions)

	var recorded strings.Builder
	recorded.WriteString("groups:\n  - name: board\n    rules:\n")
	for i, e := range expressions {
		e = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$queue", ".*").Replace(e)
		fmt.Fprintf(&recorded, "      - {record: 'board:%d', expr: '%s'}\n", i, e)
	}
	path := filepath.Join(t.TempDir(), "board.yml")
	require.NoError(t, os.WriteFile(path, []byte(recorded.String()), 0o600))
	promtool(t, "check", "rules", path)
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

// promtool runs Prometheus's own tool, which is in Debian's package prometheus.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		need.Server(t, "promtool is not installed; it is in Debian's package prometheus")
	}
	output, err := exec.CommandContext(t.Context(), tool, arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

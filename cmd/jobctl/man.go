package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

func (a *app) manCommand() *cobra.Command {
	s := &spec{
		use: "man FOLDER", short: "write manual pages", nofile: true, args: 1, complete: files,
		long: `Writes a manual page for jobctl and one for each command into a folder: jobctl.1,
jobctl-job-list.1 and so on. It creates the folder if it does not exist, and replaces
existing pages.`,
		example: "  jobctl man ~/.local/share/man/man1 && man jobctl-job-list",
	}
	c := a.command(s)
	s.run = func(_ context.Context, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return usage("man", "name one folder")
		}
		return a.writePages(c.Root(), args[0])
	}
	return c
}

func (a *app) writePages(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	pages := map[string]string{"jobctl": overviewPage(root)}
	for _, c := range leaves(root) {
		pages[pageName(c)] = page(c)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name+".1"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.stdout, "wrote %s to %s\n", plural(len(pages), "page"), plain.Text(folder))
	return nil
}

func pageName(c *cobra.Command) string { return "jobctl-" + strings.ReplaceAll(wordsOf(c), " ", "-") }

// page returns the manual page of a command. The help text is already laid out, so the page uses
// it unchanged.
func page(c *cobra.Command) string {
	usage, rest, _ := strings.Cut(help(c), "\n")
	return pageHead(pageName(c), c.Short) + section("SYNOPSIS", strings.TrimPrefix(usage, "Usage: ")) +
		section("DESCRIPTION", strings.TrimSpace(rest)) + section("SEE ALSO", "jobctl(1)")
}

func overviewPage(root *cobra.Command) string {
	var see []string
	for _, c := range leaves(root) {
		see = append(see, pageName(c)+"(1)")
	}
	return pageHead("jobctl", root.Short) + section("DESCRIPTION", strings.TrimSpace(help(root))) +
		section("FILTERS", filterTopic) + section("EXIT STATUS", exitTopic()) + section("SEE ALSO", strings.ReplaceAll(wrapped(see, 70), " ", ", "))
}

func pageHead(name, short string) string {
	return fmt.Sprintf(".TH %s 1 \"\" pawl\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), roff(name), roff(short))
}

func section(title, text string) string {
	return ".SH " + title + "\n.nf\n" + roff(strings.TrimRight(text, "\n")) + "\n.fi\n"
}

// roff escapes a text so that a manual page shows it unchanged.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

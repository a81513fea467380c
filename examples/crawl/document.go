package main

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gopawl/pawl"
)

// Document is the analysis of a document.
type Document struct {
	Path   string
	Words  int
	Links  int
	Broken []string // links to missing files
}

// readDocument reads a document and checks its links to files.
func readDocument(path string) (Document, error) {
	d := Document{Path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, pawl.Permanent(err)
	}
	if err != nil {
		return d, err
	}
	d.Words = len(strings.Fields(string(b)))
	for _, target := range links(string(b)) {
		d.Links++
		if local, ok := localPath(path, target); ok {
			if _, err := os.Stat(local); errors.Is(err, fs.ErrNotExist) {
				d.Broken = append(d.Broken, target)
			}
		}
	}
	return d, nil
}

var link = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// links returns the targets of the links in a text, except in code.
func links(text string) (targets []string) {
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "    ") {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 {
				continue // between two backticks
			}
			for _, found := range link.FindAllStringSubmatch(part, -1) {
				targets = append(targets, found[1])
			}
		}
	}
	return targets
}

// localPath returns the file that a link refers to, if any.
func localPath(from, target string) (path string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return "", false
	}
	return filepath.Join(filepath.Dir(from), filepath.FromSlash(u.Path)), true
}

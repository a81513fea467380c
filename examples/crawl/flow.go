package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Corpus is the input of a crawl.
type Corpus struct {
	Paths  []string // files and folders
	AtOnce int      // documents to read at a time
}

// Report is the result of a crawl.
type Report struct {
	Documents            []Document // longest first
	Words, Links, Broken int
}

var crawl = workflow.Define("crawl", func(r *workflow.Run, c Corpus) (Report, error) {
	// The list is a step, so that it stays as it is when files come or go meanwhile.
	paths, err := workflow.Step(r, "list", func(context.Context) ([]string, error) {
		return documents(c.Paths)
	})
	if err != nil {
		return Report{}, err
	}
	// A branch for each document, a few at a time. A document that cannot be read is an
	// error of its branch, and the others are read all the same.
	itself := func(path string) string { return path }
	read, err := workflow.Each(r, "document", paths, itself, c.AtOnce, func(r *workflow.Run, path string) (Document, error) {
		return workflow.Step(r, "read", func(context.Context) (Document, error) { return readDocument(path) })
	})
	if err != nil {
		return Report{}, err
	}
	// What only computes needs no step.
	return summary(read), nil
})

// documents returns the files, and all Markdown files below the folders.
func documents(roots []string) (paths []string, err error) {
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.Type().IsRegular() && (path == root || filepath.Ext(path) == ".md") {
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return nil, pawl.Permanent(err) // a retry would not help
		}
	}
	return paths, nil
}

func summary(read []Document) (r Report) {
	for _, d := range read {
		r.Words += d.Words
		r.Links += d.Links
		r.Broken += len(d.Broken)
	}
	slices.SortFunc(read, func(a, b Document) int {
		return cmp.Or(cmp.Compare(b.Words, a.Words), cmp.Compare(a.Path, b.Path))
	})
	r.Documents = read
	return r
}

// print writes the report.
func (r *Report) print(out io.Writer) {
	for _, d := range r.Documents {
		fmt.Fprintf(out, "%7d words %4d links  %s\n", d.Words, d.Links, d.Path)
	}
	fmt.Fprintf(out, "%7d words %4d links  in %d documents\n", r.Words, r.Links, len(r.Documents))
	for _, d := range r.Documents {
		for _, target := range d.Broken {
			fmt.Fprintf(out, "%s: broken link to %s\n", d.Path, target)
		}
	}
}

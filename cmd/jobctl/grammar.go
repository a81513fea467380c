package main

import (
	"fmt"
	"strings"
)

// plural is a number of things.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wasWere is the verb of that many.
func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// listed is a list of words in a sentence.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

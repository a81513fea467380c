package main

import (
	"fmt"
	"strings"
)

// plural returns a number of things.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wasWere returns "was" or "were" for a number.
func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// texts returns words as texts.
func texts[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = string(word)
	}
	return all
}

// listed joins words for a sentence.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// eachFlag collects the values of a flag that may be repeated.
func eachFlag(to *[]string, valid func(string) error) pflag.Value {
	return manyFlag{flagFunc{func(text string) error {
		if err := valid(text); err != nil {
			return err
		}
		*to = append(*to, text)
		return nil
	}}}
}

// pairFlag collects names with their values. Cut splits a pair, and wrong is the error for a text that is none.
func pairFlag(to *map[string]string, cut func(text string) (name, value string, ok bool), wrong string) pflag.Value {
	return manyFlag{flagFunc{func(text string) error {
		name, value, ok := cut(text)
		if !ok || name == "" {
			return errors.New(wrong)
		}
		if _, twice := (*to)[name]; twice {
			return fmt.Errorf("%s was given twice", name)
		}
		if *to == nil {
			*to = make(map[string]string)
		}
		(*to)[name] = value
		return nil
	}}}
}

// cutVariable cuts a variable of an environment, in which blanks count.
func cutVariable(text string) (name, value string, ok bool) { return strings.Cut(text, "=") }

// cutHeader cuts a header of an HTTP request, in which blanks around the parts do not count.
func cutHeader(text string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(text, ":")
	return strings.TrimSpace(name), strings.TrimSpace(value), ok
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	return nil
}

// flagsOf are flags that only have a meaning together with another one.
type flagsOf struct {
	given bool // the other one
	needs string
	flags []string
}

// refuseAlone rejects flags without the one that they need.
func refuseAlone(words string, flags *pflag.FlagSet, all ...flagsOf) error {
	for _, of := range all {
		for _, name := range of.flags {
			if !of.given && flags.Changed(name) {
				return usage(words, "--%s is for %s, which was not given", name, of.needs)
			}
		}
	}
	return nil
}

// slotsFlag takes a number that is at least 1.
func slotsFlag(to *int) pflag.Value {
	return flagFunc{func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("it must be a number, 1 or more")
		}
		*to = n
		return nil
	}}
}

// sizeFlag takes a number of bytes.
func sizeFlag(to *int) pflag.Value { return parsed(to, parseSize) }

var errSize = errors.New("it must be a number of bytes, at least 1, such as 65536, 64KiB or 2MiB")

// parseSize reads a number of bytes in the format of byteSize, without a fraction.
func parseSize(text string) (int, error) {
	shift := 0
	for unit, bits := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			text, shift = strings.TrimSpace(number), bits
			break
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt>>shift {
		return 0, errSize
	}
	return n << shift, nil
}

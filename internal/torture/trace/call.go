package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Call is a system call.
type Call struct {
	Name     string
	Args     []string // as strace writes them; strings are unquoted
	Result   int64    // when it is Known
	Known    bool     // false for a call that did not return
	Injected bool     // strace made it fail

	clipped bool // strace truncated a string
}

// Failed reports whether the call returned an error.
func (c *Call) Failed() bool { return c.Known && c.Result < 0 }

func (c *Call) number(arg int) (int64, error) {
	if arg >= len(c.Args) {
		return 0, fmt.Errorf("%s has no argument %d: %q", c.Name, arg, c.Args)
	}
	return strconv.ParseInt(c.Args[arg], 0, 64)
}

// moment is the start or the end of a call.
type moment struct {
	call  *Call
	begin bool
}

// parseCalls reads the output of strace -f. The last line of a killed process may be
// truncated.
func parseCalls(r io.Reader) (moments []moment, err error) {
	lines := bufio.NewReaderSize(r, 1<<20)
	open := make(map[string]*Call) // by thread
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return moments, nil
		}
		if err != nil {
			return nil, err
		}
		thread, rest, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if !ok {
			return nil, fmt.Errorf("the log of strace has the line %q", truncate(line))
		}
		rest = bytes.TrimLeft(rest, " ")
		if bytes.HasPrefix(rest, []byte("+++")) || bytes.HasPrefix(rest, []byte("---")) {
			continue // the end of a thread; a signal
		}
		if bytes.HasPrefix(rest, []byte("???")) || bytes.HasPrefix(rest, []byte("<... ??? resumed>")) {
			continue // a thread that died before strace could read its call
		}
		if moments, err = parseLine(moments, open, string(thread), rest); err != nil {
			return nil, fmt.Errorf("%w in %q", err, truncate(line))
		}
	}
}

var (
	detached   = []byte(" <detached ...>") // the process died
	unfinished = []byte(" <unfinished ...>")
	resumed    = []byte(" resumed>")
)

// parseLine reads a call, its start or its end.
func parseLine(moments []moment, open map[string]*Call, thread string, rest []byte) ([]moment, error) {
	if after, ok := bytes.CutPrefix(rest, []byte("<... ")); ok {
		_, rest, _ = bytes.Cut(after, resumed)
		if bytes.HasSuffix(rest, detached) {
			return moments, nil
		}
		c := open[thread]
		if c == nil {
			return nil, errors.New("a resumed call has no start")
		}
		delete(open, thread)
		if err := c.end(rest); err != nil {
			return nil, err
		}
		return append(moments, moment{c, false}), nil
	}
	name, rest, ok := bytes.Cut(rest, []byte("("))
	if !ok {
		return nil, errors.New("no call")
	}
	c := &Call{Name: string(name)}
	moments = append(moments, moment{c, true})
	args, ok := bytes.CutSuffix(rest, unfinished)
	if !ok {
		args, ok = bytes.CutSuffix(rest, detached)
	}
	if ok {
		open[thread] = c
		_, err := c.arguments(args)
		return moments, err
	}
	if err := c.end(rest); err != nil {
		return nil, err
	}
	return append(moments, moment{c, false}), nil
}

// end reads the last arguments and the result.
func (c *Call) end(text []byte) error {
	rest, err := c.arguments(text)
	if err != nil {
		return err
	}
	_, result, ok := strings.Cut(string(rest), "= ")
	if !ok {
		return errors.New("no result")
	}
	c.Injected = strings.Contains(result, "(INJECTED)")
	result, reason, _ := strings.Cut(result, " ")
	if result == "?" || strings.HasPrefix(reason, "(errno ") { // the process ended inside it
		return nil
	}
	c.Known = true
	c.Result, err = strconv.ParseInt(result, 0, 64)
	return err
}

// arguments reads arguments up to the closing parenthesis, and returns the rest. Only
// brackets and braces nest, and no relevant call has them.
func (c *Call) arguments(text []byte) (rest []byte, err error) {
	depth := 0
	for len(text) > 0 {
		switch b := text[0]; {
		case b == ')' && depth == 0:
			return text[1:], nil
		case b == ' ' || b == ',':
			text = text[1:]
		case b == '"':
			var s string
			if s, text, err = unquote(text[1:]); err != nil {
				return nil, err
			}
			if after, ok := bytes.CutPrefix(text, []byte("...")); ok {
				c.clipped, text = true, after
			}
			c.Args = append(c.Args, s)
		case b == '[' || b == '{':
			depth++
			text = text[1:]
		case b == ']' || b == '}':
			depth--
			text = text[1:]
		default:
			n := bytes.IndexAny(text, ",)]}\"")
			if n <= 0 {
				n = len(text)
			}
			word, _, _ := bytes.Cut(text[:n], unfinished) // the process died inside the call
			c.Args = append(c.Args, string(bytes.TrimSpace(word)))
			text = text[n:]
		}
	}
	return nil, nil
}

// unquote reads a string up to its closing quote. Each byte is \x and two digits.
func unquote(text []byte) (s string, rest []byte, err error) {
	n := bytes.IndexByte(text, '"')
	if n < 0 || n%4 != 0 {
		return "", nil, errors.New("a string without an end")
	}
	b := make([]byte, n/4)
	for i := range b {
		high, low := digit(text[4*i+2]), digit(text[4*i+3])
		if text[4*i] != '\\' || text[4*i+1] != 'x' || high > 15 || low > 15 {
			return "", nil, errors.New("a string that is not in hexadecimal digits")
		}
		b[i] = high<<4 | low
	}
	return string(b), text[n+1:], nil
}

func digit(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return b - '0'
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10
	}
	return 255
}

func truncate(line []byte) []byte { return line[:min(len(line), 200)] }

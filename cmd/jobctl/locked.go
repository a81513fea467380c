package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gopawl/pawl/admin"
)

// locked explains which process has the file, and why its app could not be asked: a stuck app
// needs another remedy than an app that does not serve, or that serves another user.
func (a *app) locked(err error) *failure {
	f := &failure{
		code: exitLocked,
		text: fmt.Sprintf("%s is locked%s", a.flags.db, holder(err)),
	}
	_, why, asked := strings.Cut(err.Error(), "its app could not be asked: ")
	switch {
	case strings.HasSuffix(f.text, "(jobctl)"):
		f.next = "Another jobctl has the file open: try again when it has ended."
	case !asked:
		f.text += " and has no admin endpoint"
		f.next = "Enable one (package admin), stop the app, or read a backup made by the app."
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(why, "no answer within"):
		f.text += ", which does not answer"
		f.next = "It is stuck or suspended, or the machine is very busy: try again, and check the\n" +
			"process. Once it has ended, jobctl works on the file; nothing that was\n" +
			"acknowledged is lost."
	case errors.Is(err, fs.ErrPermission), errors.Is(err, admin.ErrDenied):
		f.text += ", and this user may not ask its app: " + why
		f.next = "Run jobctl as the app's user, or as the superuser."
	default:
		f.text += ", and its app could not be asked: " + why
		f.next = "Check the app; only its user and the superuser may ask it."
	}
	return f
}

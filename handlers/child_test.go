package handlers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// child is the program that tests run: the test binary by another name. Its first argument
// says what it does. It ends by syscall.Exit, since os.Exit of a binary that measures its
// coverage prints something.
//
//	say CODE TEXT...        prints and ends with the code
//	cat                     copies its input to its output
//	look                    prints its argument 0, its folder and its environment
//	flood N                 prints N bytes, numbered lines
//	die                     ends by SIGKILL
//	hang SOCKET NAME        reports, and never ends by itself
//	stubborn SOCKET NAME    the same, and SIGTERM means nothing to it
//	polite SOCKET NAME      reports; at SIGTERM says "bye", waits for a line, says "clean", ends with 0
//	family SOCKET HOW THEN  starts the same program as "hang SOCKET grandchild" or
//	                        "polite ...", as HOW says, waits for it, then acts as THEN says
func child(args []string) {
	switch args[0] {
	case "say":
		fmt.Print(strings.Join(args[2:], " "))
		code, _ := strconv.Atoi(args[1])
		syscall.Exit(code)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "look":
		dir, _ := os.Getwd()
		fmt.Printf("argument 0 %s\nfolder %s\n%s\n", os.Args[0], dir, strings.Join(os.Environ(), "\n"))
	case "flood":
		n, _ := strconv.Atoi(args[1])
		w := bufio.NewWriter(os.Stdout)
		for i := range n / 8 {
			fmt.Fprintf(w, "%07d\n", i)
		}
		w.Flush()
		syscall.Exit(3)
	case "die":
		ownKill(syscall.SIGKILL)
		select {}
	case "hang":
		hang(args[1], args[2])
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		hang(args[1], args[2])
	case "polite":
		signaled := make(chan os.Signal, 1)
		signal.Notify(signaled, syscall.SIGTERM)
		conn, in := report(args[1], args[2])
		<-signaled
		fmt.Fprintln(conn, "bye")
		_, _ = in.ReadString('\n')
		fmt.Fprintln(conn, "clean")
	case "family":
		family(args[1], args[2], args[3])
	default:
		fmt.Println("no such mode:", args)
		syscall.Exit(2)
	}
}

// report connects to the test and says a name.
func report(socket, name string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		syscall.Exit(0) // the test is over
	}
	fmt.Fprintln(conn, name)
	return conn, bufio.NewReader(conn)
}

// hang blocks until the test is over.
func hang(socket, name string) {
	_, in := report(socket, name)
	_, _ = in.ReadString('\n')
	syscall.Exit(0)
}

// family starts a grandchild of the test, with as much of the marks of the attempt as how says.
func family(socket, how, then string) {
	mode := "hang"
	if how == "polite" {
		mode = "polite"
	}
	cmd := exec.Command(os.Args[0], mode, socket, "grandchild")
	switch how {
	case "session": // it has left session and group, and has the lock
		cmd.SysProcAttr = setsid()
	case "unlocked": // it has left them, and has no lock; its environment names the job
		cmd.SysProcAttr = setsid()
		closeOnExec(99)
	case "locked": // it has left them, and has the lock only
		cmd.SysProcAttr = setsid()
		cmd.Env = []string{}
	case "bare": // it is in the session, and has no lock and no environment
		closeOnExec(99)
		cmd.Env = []string{}
	case "pipe": // it has left everything but the pipe of the output
		cmd.SysProcAttr = setsid()
		closeOnExec(99)
		cmd.Env = []string{}
		cmd.Stdout = os.Stdout
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		syscall.Exit(2)
	}
	switch then {
	case "hang":
		hang(socket, "child")
	case "wait0", "wait1": // ends when the test says so
		_, in := report(socket, "child")
		_, _ = in.ReadString('\n')
		syscall.Exit(int(then[4] - '0'))
	}
}

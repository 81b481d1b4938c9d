package keeper_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// fullScreen is a full-screen program: alternate screen, raw keys, mouse. It
// shows its size and each key; Ctrl-Z suspends it as editors do, j loses the
// terminal, q ends it.
func fullScreen() {
	old, err := unix.IoctlGetTermios(0, getTermios)
	if err != nil {
		panic(err)
	}
	enter := func() {
		raw := *old
		raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
		raw.Oflag &^= unix.OPOST
		unix.IoctlSetTermios(0, setTermios, &raw)
		fmt.Print("\x1b[?1049h\x1b[?1000h\x1b[?2004h\x1b[?1h\x1b[3;9r\x1b[?25l\x1b[31m\x1b[H")
	}
	leave := func() {
		fmt.Print("\x1b[m\x1b[r\x1b[?1l\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[?1049l")
		unix.IoctlSetTermios(0, setTermios, old)
	}
	fmt.Println("before")
	resized := make(chan os.Signal, 1)
	continued := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	signal.Notify(continued, unix.SIGCONT)
	keys := make(chan byte) // read by the loop below until q
	go func() {
		var b [1]byte
		for n, err := os.Stdin.Read(b[:]); n == 1 && err == nil; n, err = os.Stdin.Read(b[:]) {
			keys <- b[0]
		}
	}()
	last := "" // key; it stays on the screen, whatever makes us draw again
	draw := func(what string) {
		ws, _ := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		fmt.Printf("\x1b[2J\x1b[Hsize %dx%d %s.%s", ws.Col, ws.Row, what, last)
	}
	enter()
	draw("shown")
	for {
		select {
		case <-resized:
			draw("resized")
		case <-continued:
			enter()
			draw("back")
		case k := <-keys:
			switch k {
			case 'q':
				leave()
				fmt.Println("bye 1\nbye 2")
				return
			case 'j': // a job that takes the terminal and does not give it back
				job := exec.Command("/bin/sh", "-c", ":")
				job.SysProcAttr = &syscall.SysProcAttr{Foreground: true}
				if err := job.Run(); err != nil {
					panic(err)
				}
			case 'Z' - '@':
				leave()
				fmt.Println("suspended")
				unix.Kill(0, unix.SIGTSTP)
			default:
				last = fmt.Sprint(" key ", k)
				draw("typed")
			}
		}
	}
}

package power

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// fileSystem is a type of file system, and its mount options.
type fileSystem struct {
	name    string
	make    []string // the mkfs command, without the file
	size    int64    // size of the device, which is a sparse file
	options string
}

var fileSystems = []fileSystem{
	{"ext4", []string{"mkfs.ext4", "-q", "-F", "-b", "4096"}, 48 << 20, ""},
	{"ext4", []string{"mkfs.ext4", "-q", "-F", "-b", "4096"}, 48 << 20, "nobarrier,data=writeback"},
	{"xfs", []string{"mkfs.xfs", "-q", "-f"}, 320 << 20, "nouuid"},
}

// present returns the file systems that this machine can make.
var present = sync.OnceValue(func() (found []fileSystem) {
	for _, fs := range fileSystems {
		if harness.FindProgram(fs.make[0]) != "" {
			found = append(found, fs)
		}
	}
	return found
})

// format makes a file system in a new file.
func (fs fileSystem) format(path string) error {
	return harness.MakeFileSystem(path, fs.size, fs.make...)
}

// mounted is a file system mounted from a file.
type mounted struct {
	folder string
	device string // the name of the loop device
}

// mount mounts the file system of a file. The loop device ends with the mount.
func (fs fileSystem) mount(file, folder string) (*mounted, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	options := "loop"
	if fs.options != "" {
		options += "," + fs.options
	}
	if err := harness.System("mount", "-t", fs.name, "-o", options, file, folder); err != nil {
		return nil, err
	}
	m := &mounted{folder: folder}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, errors.Join(err, m.unmount())
	}
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == folder {
			m.device = filepath.Base(words[0])
		}
	}
	if _, _, err := m.written(); err != nil {
		return nil, errors.Join(err, m.unmount())
	}
	return m, nil
}

// unmount waits while another process, such as a service of the machine, uses the file system.
func (m *mounted) unmount() (err error) {
	for range 50 {
		if err = harness.System("umount", m.folder); err == nil || !strings.Contains(err.Error(), "busy") {
			return err
		}
		<-time.After(100 * time.Millisecond)
	}
	return err
}

// written returns the number of the device's writes, and the number in progress.
func (m *mounted) written() (writes, underWay string, err error) {
	text, err := os.ReadFile("/sys/block/" + m.device + "/stat")
	if err != nil {
		return "", "", err
	}
	words := strings.Fields(string(text))
	if len(words) < 9 {
		return "", "", fmt.Errorf("the device %s counts its writes as %q", m.device, text)
	}
	return words[4], words[8], nil
}

// deviceMissing reports what this machine lacks. It tries a mount.
var deviceMissing = sync.OnceValue(func() string {
	if os.Geteuid() != 0 {
		return "needs root, to mount"
	}
	if len(present()) == 0 {
		return "needs mkfs.ext4 or mkfs.xfs"
	}
	if err := tryDevice(present()[0]); err != nil {
		return fmt.Sprintf("cannot mount a file system here: %v", err)
	}
	return ""
})

func tryDevice(fs fileSystem) error {
	dir, err := os.MkdirTemp("", "pawl-torture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "disk")
	if err := fs.format(file); err != nil {
		return err
	}
	m, err := fs.mount(file, filepath.Join(dir, "mount"))
	if err != nil {
		return err
	}
	return m.unmount()
}

//go:build unix && !linux

package child

import "syscall"

// attributes has no parent death signal to set outside Linux: there, a parent that is killed leaves its
// children behind. One that is stopped or panics in a test does not.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

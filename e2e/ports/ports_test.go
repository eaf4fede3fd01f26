package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestTakeGivesDistinctPortsUntilReleased(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		lease, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
		if seen[lease.Port()] {
			t.Fatalf("port %d was leased twice", lease.Port())
		}
		seen[lease.Port()] = true
	}
}

func TestTryRefusesTakenPorts(t *testing.T) {
	lease, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // other lock files: only the listener says no
	listener, err := net.Listen("tcp", lease.Address())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := try(dir, lease.Port()); again != nil || err != nil {
		t.Errorf("leased %d although somebody listens there (%v)", lease.Port(), err)
	}
	listener.Close()
	again, err := try(dir, lease.Port())
	if err != nil || again == nil {
		t.Fatalf("port %d is free and was not leased: %v", lease.Port(), err)
	}
	if twice, _ := try(dir, lease.Port()); twice != nil {
		t.Error("one lease file was locked twice")
	}
	again.Release()
	if want := "127.0.0.1:" + strconv.Itoa(lease.Port()); lease.Address() != want {
		t.Errorf("address = %s, want %s", lease.Address(), want)
	}
}

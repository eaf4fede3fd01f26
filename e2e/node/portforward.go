package node

import (
	"context"
	"io"
	"net"
	"strconv"
)

// podForwarder connects streams with the ports of a pod.
type podForwarder struct {
	table *table
	ip    string
}

// PortForward copies between the stream and the pod's port until the pod has said all, or one side fails.
func (f podForwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := f.table.dial(ctx, "tcp", net.JoinHostPort(f.ip, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, err := io.Copy(conn, stream) // ends at the latest when the caller closes the stream
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite() // the client has asked all; the pod may still be answering
			return
		}
		_ = conn.Close()
	}()
	_, err = io.Copy(stream, conn)
	return err
}

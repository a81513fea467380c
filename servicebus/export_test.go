package servicebus

import (
	"context"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// OpenOver is Open over connections that connect makes.
func OpenOver(where string, o *Options, connect func() (net.Conn, error)) (*Queue, error) {
	q, err := Open(context.Background(), where, o)
	if err != nil {
		return nil, err
	}
	q.dial = func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(where, &azservicebus.ClientOptions{
			RetryOptions:     azservicebus.RetryOptions{MaxRetries: -1},
			NewWebSocketConn: func(context.Context, azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return connect() },
		})
	}
	return q, nil
}

package cell

import (
	"context"
	"encoding/json"
)

// Services is what a cell can ask the kernel process for: the lab, with the
// engine behind it. Call runs one method to its end; event carries what the
// method streams while it runs and may block while the cell is slow. Call returns
// soon after ctx is cancelled, which happens when the cell is interrupted, gives
// up, or dies. Call is used from many goroutines at once.
type Services interface {
	Call(ctx context.Context, method string, params json.RawMessage, event func(json.RawMessage)) (json.RawMessage, error)
}

// ServiceError is a failure of Services.Call as the cell sees it: the text, which
// is all that crosses the pipe.
type ServiceError struct {
	Method string
	Text   string
}

func (e *ServiceError) Error() string { return e.Text }

package cell

import (
	"encoding/json"

	"deltafin/kernel/display"
)

// The requests that run beside cells.
const (
	reqEvaluate   = "evaluate"
	reqComplete   = "complete"
	reqInspect    = "inspect"
	reqComm       = "comm"
	reqOpenShell  = "open_subshell"
	reqCloseShell = "close_subshell"
)

type answerData struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error *errorData      `json:"error,omitempty"`
}

type evaluateData struct {
	Expression string `json:"expression"`
}

type cursorData struct {
	Code   string `json:"code"`
	Cursor int    `json:"cursor"`
	Detail int    `json:"detail"`
}

type inspectData struct {
	Bundle display.Bundle `json:"bundle"`
	Found  bool           `json:"found"`
}

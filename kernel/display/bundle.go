package display

// Bundle is a MIME bundle: one value in several forms, of which a front end
// shows the richest that it knows. Data maps a MIME type to a string (text, or
// base64 for binary types) or, for JSON types, to a value that encoding/json can
// write. Every bundle has "text/plain", fit for a terminal.
type Bundle struct {
	Data     map[string]any `json:"data"`
	Metadata map[string]any `json:"metadata"`
}

// Text is the bundle of a plain string.
func Text(s string) Bundle {
	return Bundle{Data: map[string]any{"text/plain": s}, Metadata: map[string]any{}}
}

package xtml

// Segment is a piece of a rendered conversation. Segments are encoded one by one,
// never joined; only markup may hold special tokens.
type Segment struct {
	Text   string
	Markup bool
}

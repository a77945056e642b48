package tokenizer

// Contract for now; the tokenizer's author replaces this file.

type Tokenizer struct{}

// Load reads tiktoken.model and tokenizer_config.json from dir. vocab is config's vocab_size.
func Load(dir string, vocab int) (*Tokenizer, error) { panic("contract only") }

func (t *Tokenizer) Encode(text string) []int        { panic("contract only") } // user text: specials are never recognised
func (t *Tokenizer) EncodeMarkup(text string) []int  { panic("contract only") } // trusted template text
func (t *Tokenizer) Pieces(text string) []string     { panic("contract only") }
func (t *Tokenizer) Decode(ids []int) string         { panic("contract only") } // lossy UTF-8
func (t *Tokenizer) Bytes(id int) []byte             { panic("contract only") } // nil for an id out of range
func (t *Tokenizer) Base() int                       { panic("contract only") } // number of ranks
func (t *Tokenizer) VocabSize() int                  { panic("contract only") }
func (t *Tokenizer) Special(name string) (int, bool) { panic("contract only") }

// Decoder turns a stream of ids into text, holding back incomplete runes.
type Decoder struct{ t *Tokenizer }

func (t *Tokenizer) NewDecoder() *Decoder { panic("contract only") }
func (d *Decoder) Push(id int) string     { panic("contract only") }
func (d *Decoder) Flush() string          { panic("contract only") }

package rig

import (
	"deltafin/engine"
	"deltafin/tokenizer"
)

// LoadTokenizer loads the tokenizer of o's model and none of its weights. The
// errors are those of Open.
func LoadTokenizer(o Options) (*tokenizer.Tokenizer, error) {
	var r Rig
	files, err := r.find(o)
	if err != nil {
		return nil, err
	}
	config, err := engine.ReadConfig(files, r.path)
	if err != nil {
		return nil, err
	}
	return tokenizer.LoadFS(files, config.VocabSize)
}

package rig

import (
	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/tokenizer"
)

// Inspect reads the configuration, the tokenizer and the files' headers of o's model,
// and none of its weights. It gives the directory, "" for one unpacked into memory,
// and the bytes of the weights' files. The errors are those of Open.
func Inspect(o Options) (dir string, bytes int64, err error) {
	var r Rig
	files, err := r.find(o)
	if err != nil {
		return "", 0, err
	}
	config, err := engine.ReadConfig(files, r.path)
	if err != nil {
		return "", 0, err
	}
	if _, err := tokenizer.LoadFS(files, config.VocabSize); err != nil {
		return "", 0, err
	}
	var snapshot *checkpoint.Snapshot
	if r.path != "" {
		snapshot, err = checkpoint.Open(r.path)
	} else {
		snapshot, err = checkpoint.OpenFS(files)
	}
	if err != nil {
		return "", 0, err
	}
	return r.path, snapshot.Bytes(), snapshot.Close()
}

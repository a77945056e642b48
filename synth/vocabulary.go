package synth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// ranks is a tiktoken.model of n ranks: the 256 bytes, then words of two letters and
// more, alone and after a space. Each is two earlier ones joined, so texts reach them.
func ranks(n int) []byte {
	var out []byte
	written := 0
	add := func(token string) {
		if written < n {
			out = fmt.Appendf(out, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), written)
			written++
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	var letters []string
	for b := byte('a'); b <= 'z'; b++ {
		letters = append(letters, string(b))
		add(" " + string(b))
	}
	for words := letters; written < n; {
		var longer []string
		for _, word := range words {
			for _, letter := range letters {
				longer = append(longer, word+letter)
				add(word + letter)
				add(" " + word + letter)
			}
			if written == n {
				break
			}
		}
		words = longer
	}
	return out
}

// specials is a tokenizer_config.json that names K3's special tokens.
func specials(base int) []byte {
	added := map[string]any{}
	for i, name := range map[int]string{
		0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>", 254: "[UNK]", 255: "[PAD]",
	} {
		added[fmt.Sprint(base+i)] = map[string]any{"content": name, "special": true}
	}
	data, err := json.MarshalIndent(map[string]any{
		"added_tokens_decoder": added, "bos_token": "[BOS]", "eos_token": "[EOS]", "pad_token": "[PAD]", "unk_token": "[UNK]",
		"tokenizer_class": "TikTokenTokenizer",
	}, "", " ")
	if err != nil {
		panic(err) // maps and strings
	}
	return data
}

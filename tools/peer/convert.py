"""Converts a K3 snapshot to GGUF for llama.cpp.

    convert.py LLAMA_CPP_SOURCE SNAPSHOT OUT.gguf

llama.cpp's own converter makes the weights: the spine stays BF16, the experts stay MXFP4. It would run
the release's Python tokenizer for the vocabulary, which a snapshot need not have; that part is made
here from tiktoken.model and tokenizer_config.json.
"""

import base64
import json
import sys
from pathlib import Path

source, snapshot, out = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
sys.path[:0] = [str(source), str(source / "gguf-py")]

import gguf  # noqa: E402
from conversion.kimi_k3 import KimiK3Model  # noqa: E402

SPECIALS = 256


def byte_letters():
    """GPT-2's letter for each byte: the byte itself where that prints, else one from 256 on."""
    prints = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    rest = [b for b in range(256) if b not in prints]
    return {b: chr(b) for b in prints} | {b: chr(256 + i) for i, b in enumerate(rest)}


LETTERS = byte_letters()


def spell(token):
    return "".join(LETTERS[b] for b in token)


def halves(token, ranks):
    """The two tokens whose merge is this one: its bytes merged, lowest rank first, by lower ranks alone."""
    parts, limit = [token[i : i + 1] for i in range(len(token))], ranks[token]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, limit), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        rank, at = min(pairs)
        if rank >= limit:
            return None  # no text reaches it but as a whole piece
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def write_vocabulary(model):
    ranks = {}
    for line in (snapshot / "tiktoken.model").read_text().splitlines():
        if line:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    named = json.loads((snapshot / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    base = len(ranks)
    tokens = [spell(token) for token in sorted(ranks, key=ranks.get)]
    tokens += [f"<|reserved_token_{base + i}|>" for i in range(SPECIALS)]
    for number, special in named.items():
        tokens[int(number)] = special["content"]
    merged = [halves(token, ranks) for token in sorted(ranks, key=ranks.get) if len(token) > 1]

    w, config = model.gguf_writer, model.hparams
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("kimi-k2")
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.NORMAL] * base + [gguf.TokenType.CONTROL] * SPECIALS)
    w.add_token_merges([" ".join(map(spell, pair)) for pair in merged if pair])
    w.add_bos_token_id(config["bos_token_id"])
    w.add_eos_token_id(config["eos_token_id"])
    w.add_pad_token_id(config["pad_token_id"])
    w.add_add_bos_token(False)


KimiK3Model.set_vocab = write_vocabulary
sys.argv = ["convert_hf_to_gguf.py", str(snapshot), "--outfile", out, "--outtype", "bf16"]
import convert_hf_to_gguf  # noqa: E402

convert_hf_to_gguf.main()

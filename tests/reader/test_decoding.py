"""Text of tokens as they come: the same text in the end, whole characters on the way."""

from __future__ import annotations

import random

from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from lrp4rag.reader.encoding import Decoding
from tests.tiny import END, tiny_tokenizer

TEXT = "It was the naïve café 🗼 of 東京, the old stone bridge"


def sentencepiece_like() -> PreTrainedTokenizerFast:
    """As Llama 2's: a space is ▁, unknown characters are bytes, the first space is not shown."""
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁the", "▁bridge", "▁", "s"]
    tokenizer = Tokenizer(
        models.BPE({piece: k for k, piece in enumerate(pieces)}, [], byte_fallback=True, unk_token="<unk>")
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def decoded(tokenizer: PreTrainedTokenizerFast, ids: list[int]) -> tuple[list[str], Decoding]:
    decoding = Decoding(tokenizer)
    return [decoding.step(token) for token in ids], decoding


def test_pieces_are_whole_characters_and_make_up_the_text() -> None:
    tokenizer = tiny_tokenizer()
    encoding = tokenizer(TEXT, return_offsets_mapping=True)
    texts, decoding = decoded(tokenizer, encoding["input_ids"])
    assert "".join(texts) == decoding.text == TEXT
    assert "\ufffd" not in "".join(texts)
    assert "🗼" in texts
    assert texts.count("") == sum(len(c.encode()) - 1 for c in TEXT)  # no merges of these bytes were learnt
    assert decoding.offsets == tuple(encoding["offset_mapping"])


def test_bytes_of_a_sentencepiece_vocabulary() -> None:
    tokenizer = sentencepiece_like()
    pieces = ["▁the", "▁bridge", "s", "▁", *(f"<0x{byte:02X}>" for byte in "é🗼".encode()), "▁the"]
    texts, decoding = decoded(tokenizer, tokenizer.convert_tokens_to_ids(pieces))
    assert texts == ["the", " bridge", "s", " ", "", "é", "", "", "", "🗼", " the"]
    assert decoding.text == "the bridges é🗼 the"


def test_control_tokens_have_no_text() -> None:
    tokenizer = tiny_tokenizer()
    the, bridge = (tokenizer(word)["input_ids"] for word in ("the", " bridge"))
    texts, decoding = decoded(tokenizer, [*the, tokenizer.convert_tokens_to_ids(END), *bridge])
    assert texts[len(the)] == ""
    assert decoding.text == "the bridge"
    assert decoding.offsets[-1][1] == len("the bridge")


def test_a_character_that_stays_incomplete_is_in_the_text_only() -> None:
    tokenizer = tiny_tokenizer()
    ids = tokenizer("the 🗼")["input_ids"][:-1]
    texts, decoding = decoded(tokenizer, ids)
    assert "".join(texts) == "the "
    assert decoding.text.startswith("the \ufffd")
    assert decoding.offsets[-1] == (4, len(decoding.text))


def test_any_tokens_whatever() -> None:
    """A reader may write bytes that are no characters: nothing is lost, and no offset is outside."""
    tokenizer = tiny_tokenizer()
    for seed in range(8):
        ids = random.Random(seed).choices(range(len(tokenizer)), k=60)
        texts, decoding = decoded(tokenizer, ids)
        assert decoding.text.startswith("".join(texts))
        assert len(decoding.offsets) == len(ids)
        ends = [end for _, end in decoding.offsets]
        assert ends == sorted(ends)
        assert ends[-1] == len(decoding.text)
    assert (Decoding(tokenizer).text, Decoding(tokenizer).offsets) == ("", ())

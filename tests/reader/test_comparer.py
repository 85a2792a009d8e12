"""A comparer reads pairs as its file says, long ones in pieces."""

from __future__ import annotations

import pytest
import torch

from experiments.comparer import saving
from lrp4rag.reader import comparer as reader
from lrp4rag.reader.comparer import Comparer, Pair, encode_pair
from lrp4rag.util.errors import InputError
from tests.experiments.comparer.tiny import answers, tiny_network


def test_a_comparer_is_written_in_eight_bits_and_read_by_any_precision(tmp_path, monkeypatch) -> None:
    path, pairs = tmp_path / "comparer.safetensors", [one.pair for one in answers(1)]
    networks = [tiny_network()[0].eval() for _ in range(2)]
    for module in (saving, reader):
        monkeypatch.setattr(module, "new_network", tiny_network)
    saving.save_comparer(path, networks, {"mine": 1})
    tokenizer = tiny_network()[1]
    for source, asked in (("mine", networks[:1]), ("other", networks)):
        expected = Comparer(asked, tokenizer, {}, (), "")(pairs)
        for one, other in zip(Comparer.load(path)(pairs, source), expected, strict=True):
            assert one.classes == pytest.approx(other.classes, abs=0.05)
            assert one.words == pytest.approx(other.words, abs=0.05)
    Comparer.load(path, torch.bfloat16)
    monkeypatch.setattr(reader, "new_network", lambda dtype=torch.float32: tiny_network(dtype, seed=1))
    with pytest.raises(InputError, match="another encoder"):
        Comparer.load(path)


def test_a_long_claim_is_read_in_pieces_and_a_long_question_leaves_it_whole() -> None:
    network, tokenizer = tiny_network()
    comparer = Comparer([network.eval()], tokenizer, {}, (), "")
    claim = " ".join(["the bridge is red"] * 60)
    long, asked = comparer(
        [Pair("the bridge is blue", "", claim), Pair("the bridge", "is it " * 300, "it is red")]
    )
    assert [claim[start:end] for start, end in long.spans] == claim.split()
    assert len(asked.spans) == 3
    assert asked.classes.sum() < 0


def test_unknown_words_are_not_each_others() -> None:
    _, tokenizer = tiny_network()
    encoded = encode_pair(tokenizer, Pair("\u8fd4\u54c1 is", "", "\u4fdd\u8a3c is"))
    words = [reader.MATCHES[number] for number in encoded.matches if number]
    assert "claim: pair" not in words
    assert words.count("claim: alone") == 1

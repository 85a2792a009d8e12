"""Batches, windows and draws that every encoder shares."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lrp4rag.experiments.systems.encoders.running import autocast, batches, encoded_pair, seeded, tokens_read
from lrp4rag.reader import reader
from tests.experiments.systems.encoders.tiny import Marker, tiny_config, tiny_wordpiece

TOKENIZER = tiny_wordpiece()


def test_every_text_is_in_one_batch_and_no_padded_batch_exceeds_the_budget() -> None:
    lengths = np.random.default_rng(0).integers(1, 30, 200).tolist()
    found = list(batches(lengths, 64))
    assert sorted(np.concatenate(found).tolist()) == list(range(200))
    sizes = [len(one) * max(lengths[k] for k in one) for one in found]
    assert max(sizes) <= 64
    # Texts of like lengths share a batch, so little is padded.
    assert sum(sizes) < 1.1 * sum(lengths)


def test_batches_worked_out_by_hand() -> None:
    # Shortest first, equals in their order: 2 2 3 | 5 5 | 9, which alone exceeds the budget.
    found = [one.tolist() for one in batches([5, 2, 9, 3, 5, 2], 10)]
    assert found == [[1, 5, 3], [0, 4], [2]]
    assert list(batches([])) == []
    assert [one.tolist() for one in batches([5000, 1, 5000])] == [[1], [0], [2]]


def test_a_seed_decides_inside_and_the_global_generator_goes_on_as_before() -> None:
    torch.manual_seed(7)
    expected = torch.rand(4)
    torch.manual_seed(7)
    first = torch.rand(1)
    with seeded(3):
        drawn = torch.rand(2)
    rest = torch.rand(3)
    assert torch.equal(torch.cat([first, rest]), expected)
    with seeded(3):
        assert torch.equal(torch.rand(2), drawn)
    with seeded(4):
        assert not torch.equal(torch.rand(2), drawn)


def test_the_global_generator_goes_on_after_a_failure() -> None:
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    with pytest.raises(ValueError, match="broken"), seeded(3):
        raise ValueError("broken")
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(("fastest", "dtype"), [("bfloat16", torch.bfloat16), ("float32", torch.float32)])
def test_products_have_the_fastest_precision(monkeypatch: pytest.MonkeyPatch, fastest, dtype) -> None:
    monkeypatch.setattr(reader, "fastest_dtype", lambda device: fastest)
    with autocast("cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("positions", "most", "own", "expected"),
    [(512, 4096, 512, 512), (514, 4096, 512, 512), (8192, 64, 512, 64)],
)
def test_what_is_read_fits_positions_tokenizer_and_limit(positions, most, own, expected) -> None:
    # RoBERTa has 514 positions for 512 tokens: its tokenizer says so.
    config = tiny_config(max_position_embeddings=positions)
    assert tokens_read(config, tiny_wordpiece(own), most) == expected


def test_models_without_fixed_positions_read_what_is_allowed() -> None:
    class Relative:
        """As T5's configuration."""

    assert tokens_read(Relative(), TOKENIZER, 512) == 512
    assert tokens_read(Marker({}, longest=9).config, TOKENIZER, 512) == 9


def pair(first: str, second: str, longest: int) -> list[str]:
    return TOKENIZER.convert_ids_to_tokens(encoded_pair(TOKENIZER, first, second, longest)["input_ids"])


def test_the_first_of_two_texts_is_cut_off() -> None:
    assert pair("the old bridge", "it was red", 9) == [
        *("[CLS]", "the", "old", "bridge", "[SEP]", "it", "was", "red", "[SEP]")
    ]
    assert pair("the old bridge", "it was red", 7) == [
        *("[CLS]", "the", "[SEP]", "it", "was", "red", "[SEP]")
    ]


def test_where_the_second_leaves_no_room_both_are_cut_off() -> None:
    found = pair("the old bridge is old", "it was red red red red red", 9)
    assert len(found) == 9
    assert found.count("[SEP]") == 2
    assert found.index("[SEP]") > 1  # something of the first is left
    assert found[-4:-1] == ["it", "was", "red"]
    assert pair("", "it was red", 6) == ["[CLS]", "[SEP]", "it", "was", "red", "[SEP]"]

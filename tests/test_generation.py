"""A response with its relevance: equal to the replay of the same tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lrp4rag.generation import from_passages, generate, generating
from lrp4rag.lrp import COMPOSITES, attribute
from lrp4rag.lrp.streaming import running_below
from lrp4rag.reader import Reader
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.classifiers.samples import judge
from tests.lrp.checks import state_of
from tests.reader.test_reader import windowed
from tests.scripted import make_it_say
from tests.tiny import bridge_example

TEXT = "naïve café. 🗼 東京."


@pytest.mark.parametrize("composite", COMPOSITES)
def test_it_equals_the_replay_of_its_tokens(tiny_reader: Reader, composite: str) -> None:
    generation = generate(bridge_example(), tiny_reader, composite=composite, max_new_tokens=12)
    made = generation.relevance
    replay = attribute(tiny_reader, made.encoded, composite=composite, segments=True)
    scale = np.abs(replay.by_segment).max()
    for name in ("by_segment", "response", "logits"):
        np.testing.assert_allclose(
            getattr(made, name), getattr(replay, name), rtol=1e-4, atol=1e-5 * scale, err_msg=name
        )
    assert (made.composite, made.target, made.reader) == (replay.composite, replay.target, replay.reader)


def test_the_tokens_are_those_of_greedy_generation(tiny_reader: Reader) -> None:
    generation = generate(bridge_example(), tiny_reader, max_new_tokens=12)
    encoded = generation.relevance.encoded
    prompt = tiny_reader.encode_prompt(bridge_example())
    ids = torch.tensor([prompt.prompt_ids])
    expected = tiny_reader.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, pad_token_id=0
    )
    assert encoded.response_ids == tuple(expected[0, ids.shape[1] :].tolist())
    assert (encoded.prompt_ids, encoded.segments) == (prompt.prompt_ids, prompt.segments)
    assert generation.ending == "length"
    assert list(generation.seconds) == ["first token", "further tokens"]


def test_tokens_come_one_by_one_and_are_those_of_the_result(tiny_reader: Reader) -> None:
    followed = []
    generation = generate(bridge_example(), tiny_reader, max_new_tokens=5, follow=followed.append)
    assert followed == list(generation.tokens)
    before = state_of(tiny_reader.model)
    first = generating(bridge_example(), tiny_reader, max_new_tokens=5)
    token = next(first)
    assert state_of(tiny_reader.model) != before
    first.close()
    assert state_of(tiny_reader.model) == before
    assert token.id == followed[0].id
    assert list(token.relevance) == ["template", "question", "passage 1", "passage 2", "passage 3"]
    assert token.total == pytest.approx(sum(token.relevance.values()), rel=1e-5)
    np.testing.assert_allclose(generation.by_segment, generation.relevance.by_segment.sum(1), rtol=1e-5)


def test_characters_of_several_tokens_and_what_takes_a_replay(
    tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ids = tiny_reader.tokenizer(TEXT)["input_ids"]
    make_it_say(monkeypatch, ids)
    generation = generate(bridge_example(), tiny_reader)
    assert [token.id for token in generation.tokens] == ids
    assert generation.response == "".join(token.text for token in generation.tokens) == TEXT
    relevance = generation.relevance
    assert relevance.encoded == tiny_reader.encode(bridge_example(response=TEXT))
    assert [(s.start, s.end) for s in judge(relevance.encoded, relevance).sentences] == [(0, 11), (12, 17)]
    relevance.save(tmp_path / "made.safetensors")
    loaded = type(relevance).load(tmp_path / "made.safetensors")
    np.testing.assert_array_equal(loaded.by_segment, relevance.by_segment)


def test_the_leading_passage(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    make_it_say(monkeypatch, [7, 8, 9])
    generation = generate(bridge_example(), tiny_reader)

    def summing_to(*by_segment: float):
        tokens = (replace(generation.tokens[0], by_segment=np.array(by_segment, np.float32)),)
        return replace(generation, tokens=tokens)

    assert summing_to(9, 9, 1, 3, 2).passage == 1
    assert summing_to(9, 9, -1, -3, 0).passage is None


@pytest.mark.parametrize(
    ("by_segment", "share"),
    [
        ([1, 1, 3, 3], 0.75),
        ([1, -1, 3, 3], 0.75),  # what speaks against it counts as much as what speaks for it
        ([1, 1, -3, 1], 0.0),
        ([1, 1, -1, 3], 2 / 6),
        ([0, 0, 2, 0], 1.0),
        ([0, 0, 0, 0], 0.0),
    ],
)
def test_the_share_of_the_passages(by_segment: list[float], share: float) -> None:
    assert from_passages(np.array(by_segment, np.float32)) == pytest.approx(share)


# Where it ends.


def test_it_ends_where_a_condition_says_so(tiny_reader: Reader) -> None:
    stopped = generate(bridge_example(), tiny_reader, stop=running_below(1e9, 3))
    assert (len(stopped.tokens), stopped.ending) == (3, "stop")
    last = generate(bridge_example(), tiny_reader, stop=running_below(1e9, 3), max_new_tokens=3)
    assert last.ending == "stop"


def test_it_ends_before_an_end_token(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [token.id for token in generate(bridge_example(), tiny_reader, max_new_tokens=8).tokens]
    end = next(token for token in whole[1:] if token != whole[0])
    monkeypatch.setattr(tiny_reader.model.generation_config, "eos_token_id", end)
    generation = generate(bridge_example(), tiny_reader, max_new_tokens=8)
    assert [token.id for token in generation.tokens] == whole[: whole.index(end)]
    assert generation.ending == "end"
    monkeypatch.setattr(tiny_reader.model.generation_config, "eos_token_id", whole[0])
    with pytest.raises(LRP4RAGError, match="empty response"):
        generate(bridge_example(), tiny_reader, max_new_tokens=8)


def test_it_ends_with_the_window(tiny_reader: Reader) -> None:
    """What a prompt leaves no room for is in tests/reader/test_reader.py."""
    n = len(tiny_reader.encode_prompt(bridge_example()).prompt_ids)
    generation = generate(bridge_example(), windowed(tiny_reader, n + 3))
    assert (len(generation.tokens), generation.ending) == (3, "window")
    with pytest.raises(InputError, match=f"prompt of {n} tokens leaves no room"):
        generate(bridge_example(), windowed(tiny_reader, n))
    cut = generate(bridge_example(), windowed(tiny_reader, n), max_new_tokens=4, truncation="passages")
    assert len(cut.tokens) <= cut.relevance.encoded.dropped == 4


def test_its_own_response_is_ignored(tiny_reader: Reader) -> None:
    with_one, without = bridge_example(), bridge_example(response=None)
    made = [generate(example, tiny_reader, max_new_tokens=4).response for example in (with_one, without)]
    assert made[0] == made[1]

"""What one plain pass tells of a response, against ordinary full passes of the model, of every family."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch

from lrp4rag.reader import Encoded, Reader, reading
from lrp4rag.reader.reading import Branch, PromptReading, Reading
from lrp4rag.util.errors import InputError, RelevanceError
from tests.lrp.tiny_families import FAMILIES, WINDOW, build
from tests.tiny import random_tokens

pytestmark = pytest.mark.usefixtures("double")

families = pytest.mark.parametrize("name", FAMILIES)
some_families = pytest.mark.parametrize("name", ["llama", "mistral", "gemma3", "mixtral"])
"""Full, sliding and both kinds of layers, and experts: what caches differ in."""
LENGTHS = (1, WINDOW + 6)
"""Of prompts: one token, and more than a sliding window."""
RESPONSE = 6
FAR = -50.0
LARGEST_HALF = 65504


@cache
def model_of(name: str):
    return build(name)


@cache
def encoded(length: int, count: int = RESPONSE, seed: int = 0) -> Encoded:
    """Random tokens: template, question, then passages."""
    tokens = random_tokens(length, count, seed=seed)
    segments = (0, 1, *[2 + k % 2 for k in range(length - 2)])[:length] if length > 1 else (2,)
    return Encoded(
        prompt_ids=tokens.prompt_ids,
        response_ids=tokens.response_ids,
        text="",
        response="",
        prompt_offsets=((0, 0),) * length,
        response_offsets=((0, 0),) * count,
        segments=segments,
        segment_names=("template", "question", "passage 1", "passage 2"),
    )


def prompt_reading(name: str, example: Encoded, layers: tuple[int, ...] | None = None) -> PromptReading:
    model = model_of(name)
    last = model.config.num_hidden_layers - 1
    return PromptReading(Reader(model, None, None), example, (0, last) if layers is None else layers)


def full_pass(name: str, ids):
    """Logits (tokens, vocabulary) and hidden states, without a cache."""
    with torch.no_grad():
        output = model_of(name)(torch.tensor([list(ids)]), use_cache=False, output_hidden_states=True)
    return output.logits[0], [state[0] for state in output.hidden_states]


def logprobs_after(name: str, before, ids) -> list[float]:
    """Of the tokens `ids` after those before them, by a pass of their own."""
    rows = full_pass(name, (*before, *ids))[0][len(before) - 1 : -1].log_softmax(-1)
    return [float(row[token]) for row, token in zip(rows, ids, strict=True)]


def close(actual, expected, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def assert_same(actual: Reading, expected: Reading) -> None:
    for field in fields(Reading):
        tolerance = 1e-3 if field.name == "states" else 1e-9
        close(getattr(actual, field.name), getattr(expected, field.name), tolerance)


# Readings.


@families
@pytest.mark.parametrize("length", LENGTHS)
def test_likelihoods_and_states_are_those_of_a_full_pass(name: str, length: int) -> None:
    """The last layer's are those before the final norm; a chosen order of layers is kept."""
    example, model = encoded(length), model_of(name)
    last = model.config.num_hidden_layers - 1
    result = prompt_reading(name, example, (last, 0, 1)).read(example.response_ids)
    logits, states = full_pass(name, (*example.prompt_ids, *example.response_ids))
    rows = logits[length - 1 : -1].log_softmax(-1).numpy()
    passages = {
        token for token, segment in zip(example.prompt_ids, example.segments, strict=True) if segment >= 2
    }
    for k, token in enumerate(example.response_ids):
        row, own = rows[k], rows[k][token]
        others = [value for other, value in enumerate(row) if other != token]
        near = [row[other] for other in sorted(passages - {token})]
        close(result.logprob[k], own)
        close(result.entropy[k], -sum(np.exp(value) * value for value in row))
        assert result.rank[k] == sum(value > own for value in others)
        close(result.best[k], max(others) - own)
        close(result.best_in_passages[k], max(near) - own if near else FAR)
        close(result.mass[k], sum(np.exp(near)))
    assert (result.states.dtype, result.states.shape[:2]) == (np.float16, (3, RESPONSE + 1))
    close(result.states[1], states[1][length - 1 :], 1e-3)
    close(result.states[2], states[2][length - 1 :], 1e-3)
    with torch.no_grad():
        normed = model.get_decoder().norm(torch.tensor(result.states[0], dtype=torch.float64))
    close(normed, states[-1][length - 1 :], 5e-3)


def test_states_that_half_precision_does_not_hold_are_clipped() -> None:
    """And no hook stays on the model."""
    model, example = build("llama"), encoded(11)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(1e8)
    result = PromptReading(Reader(model, None, None), example, (0,)).read(example.response_ids).states
    assert np.abs(result).max() == LARGEST_HALF
    assert not any(layer._forward_hooks for layer in model.get_decoder().layers)


def test_rows_of_the_vocabulary_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    example = encoded(11, 7)
    whole = prompt_reading("llama", example).read(example.response_ids)
    monkeypatch.setattr(reading, "ROWS", 3)
    assert_same(prompt_reading("llama", example).read(example.response_ids), whole)


@some_families
@pytest.mark.parametrize("length", LENGTHS)
def test_a_response_is_read_while_it_is_written(name: str, length: int) -> None:
    """It grows, is taken back, goes on otherwise; each time it is as one that is read on a fresh prompt."""
    example = encoded(length, 12)
    prompt, ids = prompt_reading(name, example), list(example.response_ids)
    along = prompt_reading(name, example)  # with branches in its passes
    other, another = [*ids[:4], *ids[:3]], [7, 3]
    for given in (ids[:1], ids[:5], ids, ids[:3], other, another, [*other, 1, 2]):
        fresh = prompt_reading(name, example)
        assert_same(prompt.read(given), fresh.read(given))
        branches = [Branch(k, (3, 1, 2)) for k in range(0, len(given), 2)]
        assert_same(along.read(given, branches[:2]), fresh.read(given))
        close(along.branches(branches), fresh.branches(branches))
        close(prompt.branches(branches), fresh.branches(branches))
        close(prompt.branches(branches[::-1]), fresh.branches(branches)[::-1])


def test_a_response_that_goes_on_costs_its_further_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    example = encoded(11, 9)
    prompt = prompt_reading("llama", example)
    prompt.read(example.response_ids[:6])
    read: list[int] = []
    go_on = prompt._go_on
    monkeypatch.setattr(
        prompt, "_go_on", lambda ids, **options: read.append(len(ids)) or go_on(ids, **options)
    )
    prompt.read(example.response_ids)
    assert read == [3]
    prompt.read(example.response_ids[:6])
    assert read == [3], "what was read is not read again"


def test_a_copy_reads_another_response_beside() -> None:
    example = encoded(11, 9)
    prompt, (*ids, last) = prompt_reading("llama", example), example.response_ids
    prompt.read(ids)
    other, alone = prompt.copied(), prompt_reading("llama", example)
    assert other.bytes == alone.bytes
    assert_same(other.read([7, 3]), alone.read([7, 3]))
    close(other.branches([Branch(1, (3, 1))]), alone.branches([Branch(1, (3, 1))]))
    assert_same(prompt.read([*ids, last]), prompt_reading("llama", example).read([*ids, last]))


@some_families
@pytest.mark.parametrize("shared", [0, 3, WINDOW + 2])
def test_another_prompt_is_read_from_where_it_differs(name: str, shared: int) -> None:
    first, second = encoded(WINDOW + 6, 9), encoded(WINDOW + 4, 5, seed=1)
    second = replace(second, prompt_ids=(*first.prompt_ids[:shared], *second.prompt_ids[shared:]))
    before = prompt_reading(name, first)
    before.read(first.response_ids)
    model = model_of(name)
    read: list[int] = []
    hook = model.register_forward_pre_hook(lambda _, given: read.append(given[0].shape[1]))
    after = PromptReading(Reader(model, None, None), second, before._layers, before)
    hook.remove()
    assert read == [len(second.prompt_ids) - 1 - shared]
    alone = prompt_reading(name, second)
    assert_same(after.read(second.response_ids), alone.read(second.response_ids))
    close(after.branches([Branch(1, (3, 1))]), alone.branches([Branch(1, (3, 1))]))
    ids = first.response_ids[:4]
    assert_same(before.read(ids), prompt_reading(name, first).read(ids))


def test_its_bytes_are_keys_values_and_one_row_of_logits_for_each_token() -> None:
    example = encoded(11, 9)
    prompt = prompt_reading("llama", example)
    prompt.read(example.response_ids)
    model = model_of("llama")
    config, size = model.config, model.dtype.itemsize
    of_token = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    read = len(example.prompt_ids) + len(example.response_ids)
    assert prompt.bytes == size * (read * of_token + (len(example.response_ids) + 1) * config.vocab_size)
    other = prompt_reading("llama", example)
    other.read(example.response_ids, [Branch(1, (3, 1))])
    held = other._final[0].untyped_storage().nbytes()
    assert held == size * (len(example.response_ids) + 1) * config.vocab_size, "none of the branches'"


def test_a_branch_is_read_once_while_what_it_goes_on_from_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    example = encoded(11, 9)
    prompt = prompt_reading("llama", example)
    read: list[int] = []
    read_on = prompt._read_on
    monkeypatch.setattr(
        prompt, "_read_on", lambda ids, some: read.extend([len(some)] * bool(some)) or read_on(ids, some)
    )
    early, late = Branch(1, (3, 1)), Branch(6, (2, 2))
    prompt.read(example.response_ids[:7])
    prompt.branches([early, late, early])
    prompt.read(example.response_ids)
    prompt.branches([early, late])
    assert read == [2]
    prompt.read((*example.response_ids[:4], 0, 0, 0))
    prompt.branches([early, late])
    assert read == [2, 1], "the late one goes on from another word"


def test_a_pass_that_fails_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    example = encoded(11, 9)
    prompt = prompt_reading("llama", example)
    prompt.read(example.response_ids[:6])
    with monkeypatch.context() as broken:
        broken.setattr(prompt, "_measured", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prompt.read(example.response_ids[:8])
    assert_same(
        prompt.read(example.response_ids), prompt_reading("llama", example).read(example.response_ids)
    )


# What could stand in the response's place.


def some_branches(count: int = RESPONSE) -> list[Branch]:
    """From the first token, the last one, after it, twice from one place, and longer than a window."""
    return [
        Branch(0, (5,)),
        Branch(0, (9, 2, 14)),
        Branch(count - 1, (7, 7)),
        Branch(count, (30, 31)),
        Branch(2, tuple(range(20, 20 + WINDOW + 2))),
        Branch(2, (41, 8)),
        Branch(1, (3,)),
    ]


@some_families
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("before", [0, 3])
def test_branches_are_read_in_the_pass_of_their_response(name: str, length: int, before: int) -> None:
    example, branches = encoded(length), some_branches()
    prompt, alone = prompt_reading(name, example), prompt_reading(name, example)
    if before:
        prompt.read(example.response_ids[:before])
    read: list[int] = []
    hook = model_of(name).register_forward_pre_hook(lambda _, given: read.append(given[0].shape[1]))
    reading, found = prompt.read(example.response_ids, branches), prompt.branches(branches)
    hook.remove()
    further = len(example.response_ids) - before + (not before)
    assert read == [further + sum(len(branch.ids) for branch in branches)]
    assert_same(reading, alone.read(example.response_ids))
    for result, expected in zip(found, alone.branches(branches), strict=True):
        close(result, expected)
    further_ids = (*example.response_ids, 4, 2)
    assert_same(prompt.read(further_ids), prompt_reading(name, example).read(further_ids))


@families
@pytest.mark.parametrize("length", LENGTHS)
def test_branches_are_those_of_a_pass_for_each(name: str, length: int) -> None:
    example, branches = encoded(length), some_branches()
    prompt = prompt_reading(name, example)
    read = prompt.read(example.response_ids)
    (itself,) = prompt.branches([Branch(0, example.response_ids)])
    close(itself, read.logprob)
    assert prompt.branches([]) == []
    for branch, result in zip(branches, prompt.branches(branches), strict=True):
        before = (*example.prompt_ids, *example.response_ids[: branch.start])
        close(result, logprobs_after(name, before, branch.ids))


# Passages, and what is refused.


@pytest.mark.parametrize("segments", [(0,) * 11, (0, *(1,) * 10), (*(0,) * 10, 2)])
def test_passages_that_are_none_or_hold_the_token_itself_have_no_other(segments: tuple[int, ...]) -> None:
    example = replace(encoded(11), segments=segments)
    result = prompt_reading("llama", example).read((example.prompt_ids[-1],) * 2)
    assert result.best_in_passages.tolist() == [FAR] * 2
    assert result.mass.tolist() == [0.0] * 2


def test_an_empty_prompt_or_response_is_refused() -> None:
    example = replace(encoded(11), prompt_ids=(), prompt_offsets=(), segments=())
    with pytest.raises(InputError, match="prompt has no tokens"):
        prompt_reading("llama", example)
    with pytest.raises(InputError, match="response has no tokens") as caught:
        prompt_reading("llama", encoded(11)).read(())
    assert caught.value.field == "response"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(value: float) -> None:
    model, example = build("llama"), encoded(11)
    with torch.no_grad():
        model.get_output_embeddings().weight[3] = value
    with pytest.raises(RelevanceError, match="NaN or Inf in the reader's logits"):
        PromptReading(Reader(model, None, None), example, (0,)).read(example.response_ids)

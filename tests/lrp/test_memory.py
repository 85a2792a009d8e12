"""Sizes change memory and time, never the result; memory that runs out is met with smaller ones."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import torch

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.memory import Shape, Sizes, plan, pull_bytes, push_bytes, tape_bytes
from lrp4rag.util.errors import LRP4RAGError
from tests.lrp import tiny_families
from tests.lrp.checks import SOME_NAMES, assert_close, model_of, random_weights, reference_of, state_of
from tests.lrp.entry_points import FEW, assert_agree
from tests.tiny import random_tokens, tiny_llama

TOKENS = random_tokens(13, 4)
SIZES = {
    "ones": Sizes(queries=1, tangents=1, cotangents=1, positions=1, tape="inputs"),
    "odd": Sizes(queries=5, tangents=2, cotangents=3, positions=6),
}


@pytest.mark.parametrize(
    ("name", "composite"),
    [*((name, "attnlrp") for name in SOME_NAMES), ("qwen3", "paper"), ("qwen3", "cp_lrp")],
)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_sizes_do_not_change_the_result(name: str, composite: str, sizes: Sizes) -> None:
    tokens, _, expected = reference_of(name, composite, 9, 3)  # more than the families' windows
    with relevance_mode(model_of(name), composite, sizes=sizes) as flow:
        assert_agree(flow, tokens, expected, names=(*FEW, "pull of a kept push"))


def all_halves(sizes: Sizes | None) -> list[Sizes]:
    halves = []
    while sizes is not None:
        halves.append(sizes)
        sizes = sizes.halved()
    return halves


def test_halving_ends_at_the_smallest_and_enlarges_nothing() -> None:
    assert len(all_halves(Sizes())) < 12
    assert all_halves(Sizes())[-1] == Sizes(8, 1, 1, 128, "inputs")
    assert Sizes(queries=4, positions=64, tape="inputs", tangents=1, cotangents=1).halved() is None


SHAPE = Shape(layers=30, hidden=576, heads=9, head=64, kv=3, mlp=1536, bytes=4)


@pytest.mark.parametrize("length", [200, 16_000])
def test_smaller_sizes_need_less(length: int) -> None:
    halves = all_halves(Sizes())
    pulls = [pull_bytes(SHAPE, length, 8, sizes) for sizes in halves]
    assert pulls == sorted(pulls, reverse=True)
    assert push_bytes(SHAPE, length, 8, halves[-1]) < push_bytes(SHAPE, length, 8, Sizes())
    assert tape_bytes(SHAPE, length, Sizes(tape="inputs")) * 6 < tape_bytes(SHAPE, length, Sizes())


def test_what_a_push_needs() -> None:
    """It does not grow with the square of the length; a prefix counts all its tangents and its cache."""
    assert push_bytes(SHAPE, 64_000, 1, Sizes()) < 2.1 * push_bytes(SHAPE, 32_000, 1, Sizes())
    alone, cached = (push_bytes(SHAPE, 4000, 5, Sizes(), cached=cached) for cached in (False, True))
    assert cached - alone == 4 * 6 * 4000 * 2 * 3 * 64 * 30


def test_the_plan_fits_and_makes_smaller_what_saves_most() -> None:
    def needs(sizes: Sizes) -> int:
        return pull_bytes(SHAPE, 4000, 8, sizes)

    assert plan(needs, needs(Sizes())) == Sizes()
    # Of a pull the tape is the most; then what is pulled at once; blocks of queries save little.
    assert plan(needs, needs(Sizes()) - 1) == Sizes(tape="inputs")
    least = needs(Sizes(tape="inputs"))
    assert plan(needs, least - 1) == Sizes(cotangents=4, tape="inputs")
    for limit in (least // 2, 2 * least // 3):
        assert needs(plan(needs, limit)) <= limit
    with pytest.raises(LRP4RAGError, match=r"needs about .* GB .*raise max_memory by"):
        plan(needs, 1000)


class Limited:
    """Runs out of memory for more than `rows` rows of the stack."""

    def __init__(self, rows: int, error: Exception) -> None:
        self.rows, self.error, self.seen = rows, error, []

    def __call__(self, _module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        self.seen.append(len(inputs[0]))
        if len(inputs[0]) > self.rows:
            raise self.error


ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
    MemoryError(),
]


@pytest.mark.parametrize("error", ERRORS)
def test_memory_that_runs_out_is_met_with_smaller_sizes(error: Exception) -> None:
    model, weights = tiny_llama(), random_weights(8, 13)
    before = state_of(model)
    with relevance_mode(model) as flow:
        expected = flow.push(TOKENS, weights)
        limited = Limited(3, error)
        handle = model.model.layers[1].mlp.gate_proj.register_forward_pre_hook(limited)
        assert_close(flow.push(TOKENS, weights), expected, 1e-10)
        handle.remove()
    assert (max(limited.seen), min(limited.seen)) == (9, 3)
    assert state_of(model) == before


def test_memory_that_never_suffices_is_reported_with_what_would() -> None:
    """And another error is raised as it is, at once."""
    model = tiny_llama()
    with relevance_mode(model) as flow:
        limited = Limited(0, RuntimeError("shape mismatch"))
        handle = model.model.layers[1].mlp.gate_proj.register_forward_pre_hook(limited)
        with pytest.raises(RuntimeError, match="shape mismatch"):
            flow.push(TOKENS, random_weights(8, 13))
        assert limited.seen == [9]
        handle.remove()
        model.model.layers[1].mlp.gate_proj.register_forward_pre_hook(Limited(0, ERRORS[0]))
        for run in (
            lambda: flow.push(TOKENS, random_weights(1, 13)),
            lambda: flow.prefix(TOKENS.prompt_ids, random_weights(2, 13)),
        ):
            with pytest.raises(LRP4RAGError, match=r"smallest sizes, which need about \d+\.\d GB"):
                run()


def test_a_limit_below_what_is_used_is_an_error(llama) -> None:
    with relevance_mode(llama, max_memory=1) as flow:
        for run in (
            lambda: flow.push(TOKENS, random_weights(1, 13)),
            lambda: flow.pull(TOKENS),
            lambda: flow.prefix(TOKENS.prompt_ids, random_weights(1, 13)),
        ):
            with pytest.raises(LRP4RAGError, match="raise max_memory"):
                run()


@pytest.mark.parametrize("name", ["llama", "mixtral", "phi3"])
def test_the_shape_is_the_models(name: str) -> None:
    shape = Shape.of(model_of(name))
    expected = Shape(layers=3, hidden=48, heads=6, head=8, kv=2, mlp=80, bytes=8)
    assert shape == (replace(expected, mlp=160) if name == "mixtral" else expected)


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 16}
LONG |= {"short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 5.0]}


@pytest.mark.parametrize(("name", "rope"), [("llama", DYNAMIC), ("phi3", LONG)])
def test_rotary_embeddings_that_depend_on_the_length_are_not_chunked(name: str, rope) -> None:
    model = tiny_families.build(name, rope_parameters=rope, max_position_embeddings=32)
    tokens, weights = random_tokens(33, 5), random_weights(2, 37)
    with relevance_mode(model) as flow:
        pushed, pulled = flow.push(tokens, weights), flow.pull(tokens)
    with relevance_mode(model, sizes=Sizes(positions=8, tape="inputs")) as flow:
        assert_close(flow.push(tokens, weights), pushed, 1e-10)
        assert_close(flow.pull(tokens), pulled, 1e-10)


@pytest.mark.parametrize("tape", ["rules", "inputs"])
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_tape_does_not_keep_the_tangents_alive(name: str, tape: str) -> None:
    held = []
    for tangents in (1, 8):
        with relevance_mode(model_of(name), sizes=Sizes(tape=tape)) as flow:
            flow.push(TOKENS, random_weights(tangents, 13), keep=True)
            torch.save(flow._tape, buffer := io.BytesIO())  # whole storages, each once
            held.append(len(buffer.getvalue()))
    assert held[1] <= 1.01 * held[0]


def test_a_pull_that_fits_only_with_layer_inputs_gets_them(llama) -> None:
    """The rules of the first attempt must not be carried through the smaller ones."""
    seen = []
    with relevance_mode(llama) as flow:
        expected = flow.pull(TOKENS)
        flow.forget()
        rules_of = flow.replayer.rules_of

        def limited(tape, k, queries):
            seen.append(tape.inputs is None)
            if tape.inputs is None:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return rules_of(tape, k, queries)

        flow.replayer.rules_of = limited
        assert_close(flow.pull(TOKENS), expected, 1e-10)
    assert seen[0]
    assert not seen[-1]

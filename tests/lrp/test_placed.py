"""Models whose layers are away between calls: relevance and streams are those of the plain model."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import pytest
import torch

from lrp4rag.lrp import Flow, recording, relevance_mode, stream
from lrp4rag.lrp.memory import Budget, Sizes
from lrp4rag.lrp.readout import Target
from lrp4rag.reader.placement import devices_of, input_device, is_away, visiting_bytes, weight_of
from lrp4rag.util.errors import LRP4RAGError
from tests.lrp.checks import NAMES, assert_close, model_of, random_weights
from tests.lrp.tiny_families import build
from tests.tiny import random_tokens, tiny_llama

TOKENS = random_tokens(13, 5)


def on_disk(model: Any, folder: Path, *kept: str) -> Any:
    """A copy whose weights are in files, but for parts that stay in memory."""
    placed = copy.deepcopy(model)
    layers = {f"model.layers.{k}": "disk" for k in range(len(placed.model.layers))}
    parts = {"model.embed_tokens": "disk", "model.norm": "disk", "model.rotary_emb": "cpu", "lm_head": "disk"}
    where = layers | parts | dict.fromkeys(kept, "cpu")
    return accelerate.dispatch_model(placed, where, offload_dir=str(folder))


def in_memory(model: Any) -> Any:
    """A copy whose weights are in a dictionary, from which they are loaded."""
    return accelerate.cpu_offload(copy.deepcopy(model), execution_device=torch.device("cpu"))


def everything(flow: Flow) -> dict[str, torch.Tensor]:
    """Relevance by every way through a model."""
    weights = random_weights(2, 13, seed=3)
    targets = [Target("response"), Target("largest"), Target("mean"), Target("response", (3,))]
    prefix = flow.prefix(TOKENS.prompt_ids, weights)
    streamed = list(stream(flow, TOKENS.prompt_ids, weights, max_new_tokens=4, stop_ids=()))
    found = {
        "push": flow.read(TOKENS, weights, targets),
        "pull": flow.pull(TOKENS),
        "deeper": flow.pull(TOKENS, layer=1, all_columns=True),
        "prefix": prefix.push(TOKENS.response_ids),
        "stream": torch.from_numpy(np.stack([one.relevance for one in streamed])),
        "batch": torch.cat(flow.push_batch([TOKENS, TOKENS], [weights, weights])),
    }
    with recording(flow, weights) as record:
        ids = torch.tensor([TOKENS.prompt_ids])
        flow.model.generate(ids, stopping_criteria=[record], max_new_tokens=3, do_sample=False)
    return found | {"recording": torch.from_numpy(record.relevance)}


@pytest.mark.parametrize("name", NAMES)
def test_relevance_of_layers_on_disk_is_that_of_the_plain_model(name: str, tmp_path: Path) -> None:
    placed = on_disk(model_of(name), tmp_path / "weights")
    assert all(is_away(layer) or not layer._parameters for layer in placed.model.layers.modules())
    with relevance_mode(model_of(name)) as plain, relevance_mode(placed) as flow:
        expected, found = everything(plain), everything(flow)
    for what, values in expected.items():
        assert_close(found[what], values, 1e-12)
    assert is_away(placed.model.layers[0].self_attn.o_proj)  # nothing stays loaded


@pytest.mark.parametrize("composite", ["paper", "cp_lrp"])
def test_so_is_that_of_layers_that_are_loaded_from_memory(composite: str) -> None:
    model = build("qwen2")
    placed = in_memory(model)
    with relevance_mode(model, composite) as plain, relevance_mode(placed, composite) as flow:
        expected, found = everything(plain), everything(flow)
    for what, values in expected.items():
        assert_close(found[what], values, 1e-12)


@pytest.mark.parametrize("kept", [("model.layers.0", "model.embed_tokens"), ("lm_head", "model.layers.2")])
def test_a_part_of_the_layers_may_be_away(kept: tuple[str, ...], tmp_path: Path) -> None:
    model = tiny_llama(biased=True)
    placed = on_disk(model, tmp_path / "weights", *kept)
    with relevance_mode(model) as plain, relevance_mode(placed) as flow:
        expected, found = everything(plain), everything(flow)
    for what, values in expected.items():
        assert_close(found[what], values, 1e-12)


def test_hooks_are_there_after_the_mode_as_they_were(tmp_path: Path) -> None:
    model = tiny_llama()
    placed = on_disk(model, tmp_path / "weights")
    before = {name: dict(one.__dict__) for name, one in placed.named_modules()}
    ids = torch.tensor([TOKENS.prompt_ids])
    with relevance_mode(placed) as flow:
        flow.pull(TOKENS)
    after = {name: dict(one.__dict__) for name, one in placed.named_modules()}
    assert {name: one.keys() for name, one in after.items()} == {
        name: one.keys() for name, one in before.items()
    }
    for name, one in before.items():
        assert after[name].get("forward") is one.get("forward")
        assert after[name].get("_old_forward") == one.get("_old_forward")
    with torch.no_grad():
        assert_close(placed(ids).logits, model(ids).logits, 1e-12)


def test_what_a_pass_loads_counts_as_memory(tmp_path: Path) -> None:
    model = tiny_llama()
    placed = on_disk(model, tmp_path / "weights", "model.embed_tokens", "lm_head")
    largest = model.model.layers[0].mlp.up_proj.weight.nbytes
    assert visiting_bytes(model) == 0
    assert visiting_bytes(placed) == 2 * largest
    assert devices_of(placed) == {torch.device("cpu")} == {input_device(placed)}
    with relevance_mode(placed, max_memory=10**11) as flow:
        assert flow.push(TOKENS, random_weights(1, 13)).shape == (1, 5)
    with pytest.raises(LRP4RAGError, match="at the smallest sizes"):
        Budget(placed, Sizes(), 10**6).plan(lambda sizes: 0)


def test_weights_that_nothing_loads_are_refused() -> None:
    with torch.device("meta"):
        layer = torch.nn.Linear(3, 2)
    with pytest.raises(LRP4RAGError, match=r"on no device.*device='auto'"):
        weight_of(layer)

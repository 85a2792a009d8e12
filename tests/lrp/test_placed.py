"""Models whose layers are away between calls: relevance and streams are those of the plain model."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import pytest
import torch

from lrp4rag.lrp import Target, recording, relevance_mode, stream
from lrp4rag.lrp.memory import Budget, Sizes
from lrp4rag.reader.placement import devices_of, input_device, is_away, visiting_bytes, weight_of
from lrp4rag.util.errors import LRP4RAGError
from tests.lrp.checks import assert_close, model_of, random_weights, reference_of
from tests.lrp.entry_points import assert_agree
from tests.tiny import Tokens, random_tokens, tiny_llama

TOKENS = random_tokens(13, 5)
TARGETS = [Target("response"), Target("largest"), Target("mean"), Target("response", (3,))]


def on_disk(model: Any, folder: Path, *kept: str) -> Any:
    """A copy whose weights are in files, but for parts that stay in memory."""
    placed = copy.deepcopy(model)
    layers = {f"model.layers.{k}": "disk" for k in range(len(placed.model.layers))}
    parts = {"model.embed_tokens": "disk", "model.norm": "disk", "model.rotary_emb": "cpu", "lm_head": "disk"}
    where = layers | parts | dict.fromkeys(kept, "cpu")
    return accelerate.dispatch_model(placed, where, offload_dir=str(folder))


def assert_reads_as(placed: Any, name: str, composite: str = "attnlrp") -> None:
    """Relevance by every way through the placed model is that of the plain one, also in Hugging Face's
    `generate`; nothing stays loaded."""
    tokens, _, expected = reference_of(name, composite)
    before = [is_away(module) for module in placed.modules()]
    with relevance_mode(placed, composite) as flow:
        assert_agree(flow, tokens, expected)
        prompt, weights = tokens.prompt_ids, random_weights(2, 17)
        read, deeper = flow.read(tokens, weights, TARGETS), flow.pull(tokens, layer=1)
        streamed = [token.relevance for token in stream(flow, prompt, weights, max_new_tokens=3)]
        with recording(flow, weights) as record:
            ids = torch.tensor([prompt])
            output = placed.generate(ids, stopping_criteria=[record], max_new_tokens=3, do_sample=False)
        written = Tokens(prompt, tuple(output[0, 17:].tolist()))
        assert_close(torch.from_numpy(record.relevance[:, 0]), flow.push(written, weights).float(), 1e-5)
    with relevance_mode(model_of(name), composite) as flow:
        assert_close(read, flow.read(tokens, weights, TARGETS), 1e-12)
        assert_close(deeper, flow.pull(tokens, layer=1), 1e-12)
        relevance = flow.push(written, weights).float()
        assert_close(torch.from_numpy(np.stack(streamed, 1)), relevance, 1e-5)
    assert [is_away(module) for module in placed.modules()] == before


# With biases, fused, tied with soft caps, with experts.
@pytest.mark.parametrize("name", ["qwen2", "phi3", "gemma2", "qwen3_moe"])
def test_relevance_of_layers_on_disk_is_that_of_the_plain_model(name: str, tmp_path: Path) -> None:
    placed = on_disk(model_of(name), tmp_path / "weights")
    assert all(is_away(layer) or not layer._parameters for layer in placed.model.layers.modules())
    assert_reads_as(placed, name)


def test_so_is_that_of_layers_that_are_loaded_from_memory() -> None:
    placed = accelerate.cpu_offload(copy.deepcopy(model_of("qwen2")), execution_device=torch.device("cpu"))
    assert_reads_as(placed, "qwen2", "cp_lrp")


@pytest.mark.parametrize("kept", [("model.layers.0", "model.embed_tokens"), ("lm_head", "model.layers.2")])
def test_a_part_of_the_layers_may_be_away(kept: tuple[str, ...], tmp_path: Path) -> None:
    assert_reads_as(on_disk(model_of("llama_biased"), tmp_path / "weights", *kept), "llama_biased")


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

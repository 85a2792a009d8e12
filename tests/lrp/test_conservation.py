"""The check says where relevance is lost, and finds an adapter that is wrong."""

from __future__ import annotations

import pytest
import torch

from lrp4rag.lrp import check_conservation, relevance_mode
from tests.lrp import tiny_families
from tests.lrp.checks import BIASED, composites, model_of, some_families, state_of
from tests.tiny import random_tokens


@some_families
@composites
def test_the_steps_account_for_everything(name: str, composite: str) -> None:
    """They lead without a gap from the logit to the sum of relevance over all columns."""
    model, tokens = model_of(name), random_tokens(17, 5)
    before = state_of(model)
    report = check_conservation(model, composite, tokens)
    assert state_of(model) == before
    with relevance_mode(model, composite) as flow:
        total = float(flow.pull(tokens, all_columns=True).sum(1).mean())
        logit = float(flow.explained_logits.mean())
    assert report.logit == pytest.approx(logit, rel=1e-6)
    assert report.embeddings == pytest.approx(total, rel=1e-6, abs=1e-9)
    assert report.share == pytest.approx(total / logit, rel=1e-5)
    for one, following in zip(report.steps, report.steps[1:], strict=False):
        assert one.leaving == following.entering
    assert len(report.steps) == 1 + 2 * len(model.model.layers)
    assert sum(step.lost for step in report.steps) == pytest.approx(logit - total, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", ["gemma2", "mixtral", "llama_biased", "qwen2"])
def test_cp_lrp_conserves_at_every_step(name: str) -> None:
    report = check_conservation(model_of(name), "cp_lrp")
    if name not in BIASED:
        assert report.conserves(1e-6)
        return
    assert not report.conserves()
    # Of Qwen2's biases the values' one acts, in attention; Llama's other one is the MLP's last.
    parts = {"attention"} if name == "qwen2" else {"attention", "mlp"}
    assert {step.part for step in report.steps if abs(step.lost) > 1e-6} == parts


@pytest.mark.parametrize("name", ["llama", "qwen3", "phi3", "gemma3", "smollm3"])
def test_under_attnlrp_only_attention_loses(name: str) -> None:
    """The MLP's product halves both factors, whose ratios conserve; the softmax has no such share."""
    report = check_conservation(model_of(name), "attnlrp")
    elsewhere = max(abs(step.lost) for step in report.steps if step.part != "attention")
    assert elsewhere < 1e-5 * abs(report.logit)
    assert {step.part for step in report.worst(3)} == {"attention"}


def test_a_wrong_part_is_found() -> None:
    """An output projection whose transpose is not its own: the step that it is in stands out."""
    model = tiny_families.build("llama")

    def twice(_module: torch.nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        return 2 * output

    assert check_conservation(model, "cp_lrp").conserves()
    model.model.layers[1].self_attn.o_proj.register_forward_hook(twice)
    report = check_conservation(model, "cp_lrp")
    assert not report.conserves()
    assert (report.worst(1)[0].layer, report.worst(1)[0].part) == (1, "attention")

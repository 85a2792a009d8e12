"""Push through quantised layers equals push through the model with their dequantised weights.

Three arithmetics occur, each with its tolerance relative to the largest relevance:

* torchao's int8 weight-only kernel multiplies in float32 and scales the outputs, where the twin scales
  the weights: float32 rounding apart.
* bitsandbytes' NF4 kernel dequantises and multiplies: the twin's own arithmetic. On processors with
  bfloat16 instructions it rounds inputs, scales and outputs to bfloat16 instead (0.2 % each), matrix
  after matrix, and these weights amplify it.
* LLM.int8 and torchao's dynamic int8 round every input row to 8 bits: not linear, so push is approximate.
"""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from torch import nn

pytest.importorskip("torchao", reason="quantised models need: pip install 'lrp4rag[quantised]'")
pytest.importorskip("bitsandbytes", reason="quantised models need: pip install 'lrp4rag[quantised]'")

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.readout import kernel_matrix
from lrp4rag.lrp.streaming import stream
from lrp4rag.util.errors import LRP4RAGError
from tests.lrp import quantise
from tests.lrp.checks import COMPOSITES, assert_close, logits_of, random_weights, state_of
from tests.lrp.entry_points import PUSHES, assert_agree
from tests.lrp.quantise import build, dynamic_int8, int8, llm_int8, nf4, twin
from tests.tiny import Tokens, random_tokens, tiny_llama

# Without and with biases, fused, tied with soft caps, sparse.
NAMES = ("llama", "qwen2", "phi3", "gemma2", "qwen3_moe")

FLOAT32, BFLOAT16, EIGHT_BITS = 3e-5, 0.1, 0.2
TOKENS = random_tokens(17, 5)


exact_nf4 = partial(nf4, exact=True)
double_nf4 = partial(nf4, exact=True, double=True)
exact_kernels = pytest.mark.parametrize(
    "quantised_by", [int8, exact_nf4, double_nf4], ids=["int8", "nf4", "double nf4"]
)


def pair(name: str, quantised_by, head: bool = False, **changes):
    """(quantised model, dequantised twin)."""
    original = build(name, **changes)
    quantised = quantised_by(copy.deepcopy(original), head)
    return quantised, twin(quantised, original)


def push_of(model, composite: str = "attnlrp") -> torch.Tensor:
    """R* over all columns, pushed."""
    with relevance_mode(model, composite) as flow:
        return flow.push(TOKENS, torch.eye(21))


@pytest.mark.parametrize(
    ("name", "quantised_by"),
    [*((name, int8) for name in NAMES), ("qwen2", exact_nf4), ("qwen3_moe", double_nf4)],
)
def test_every_push_equals_that_of_the_dequantised_model(name: str, quantised_by) -> None:
    """And patched logits are the model's own; it is restored, also after an exception."""
    quantised, plain = pair(name, quantised_by, head=True)
    ids = random_tokens(30, 1).ids
    expected = logits_of(quantised, ids)
    before = state_of(quantised)  # bitsandbytes packs weights at the first call

    def fail_inside(composite: str) -> None:
        relevance = push_of(plain, composite).T
        with relevance_mode(quantised, composite) as flow:
            assert_close(logits_of(quantised, ids), expected, 2e-6)
            names = PUSHES if composite == "attnlrp" else ["push"]
            assert_agree(flow, TOKENS, relevance.double(), FLOAT32, names)
            raise KeyError

    for composite in COMPOSITES:
        with pytest.raises(KeyError):
            fail_inside(composite)
    assert state_of(quantised) == before
    assert torch.equal(logits_of(quantised, ids), expected)


@pytest.mark.parametrize(("head", "tied"), [(False, False), (False, True), (True, True)])
def test_an_untied_or_tied_head_does_not_matter(head: bool, tied: bool) -> None:
    quantised, plain = pair("gemma2", int8, head, tie_word_embeddings=tied)
    assert (quantised.lm_head.weight is quantised.model.embed_tokens.weight) == (tied and not head)
    assert_close(push_of(quantised), push_of(plain), FLOAT32)


@pytest.mark.parametrize(
    ("name", "quantised_by", "tolerance"),
    [
        *((name, nf4, BFLOAT16) for name in ("llama", "gemma2")),
        *(("qwen2", kernel, EIGHT_BITS) for kernel in (llm_int8, dynamic_int8)),
    ],
)
def test_kernels_that_round_their_inputs_are_near(name: str, quantised_by, tolerance: float) -> None:
    """Among them NF4 in bfloat16, where the processor has it."""
    quantised, plain = pair(name, quantised_by, head=quantised_by is nf4)
    for composite in COMPOSITES:
        assert_close(push_of(quantised, composite), push_of(plain, composite), tolerance)


@pytest.mark.parametrize("quantised_by", [int8, exact_nf4, double_nf4, llm_int8])
def test_other_targets_read_a_quantised_head(quantised_by) -> None:
    quantised, plain = pair("gemma2", quantised_by, head=True)
    targets = ["largest", "mean", "response-mean", "response-largest"]
    with relevance_mode(plain) as flow:
        expected = flow.read(TOKENS, random_weights(2, 17), targets)
    with relevance_mode(quantised) as flow:
        tolerance = EIGHT_BITS if quantised_by is llm_int8 else FLOAT32
        assert_close(flow.read(TOKENS, random_weights(2, 17), targets), expected, tolerance)


@pytest.mark.parametrize("quantised_by", [int8, exact_nf4, double_nf4, llm_int8])
@pytest.mark.parametrize("biased", [False, True])
def test_the_matrix_of_a_kernel(quantised_by, biased: bool) -> None:
    """Packed bytes are no weights, though any tensor of them says that it can be dequantised."""
    layers = nn.Module()
    layers.body, layers.lm_head = nn.Linear(64, 320, bias=biased), nn.Linear(64, 4)
    quantised = quantised_by(layers).body
    expected = quantise.dequantised(quantised).clone()
    actual = kernel_matrix(quantised, 64, torch.float32, torch.device("cpu"))
    # LLM.int8 scales in float16.
    assert_close(actual, expected, 1e-3 if quantised_by is llm_int8 else 1e-6)


@exact_kernels
def test_a_stream_equals_a_replay(quantised_by) -> None:
    quantised, plain = pair("qwen2", quantised_by)
    weights = random_weights(3, 17)
    with relevance_mode(quantised) as flow:
        streamed = list(stream(flow, TOKENS.prompt_ids, weights, max_new_tokens=5))
    written = Tokens(TOKENS.prompt_ids, tuple(one.id for one in streamed))
    with relevance_mode(plain) as flow:
        expected = flow.push(written, weights)
    relevance = torch.stack([torch.from_numpy(one.relevance) for one in streamed], dim=1)
    assert len(streamed) == 5
    assert_close(relevance, expected, FLOAT32)


class OwnKernel(nn.Linear):
    """Stands for a quantised layer in half precision, whose kernel adds the bias it finds on itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


def test_a_large_bias_costs_the_tangents_no_digits() -> None:
    """W dx + b - b has none of them left in bfloat16, where biases are large, as some keys' are."""
    plain = tiny_llama(biased=True, dtype=torch.bfloat16)
    with torch.no_grad():
        plain.model.layers[1].self_attn.k_proj.bias *= 20
    other = copy.deepcopy(plain)
    for name, layer in quantise.linears(other, head=False).items():
        new = OwnKernel(layer.in_features, layer.out_features, dtype=torch.bfloat16)
        new.load_state_dict(layer.state_dict())
        other.set_submodule(name, new)
    assert torch.equal(push_of(other), push_of(plain))
    refused = pytest.raises(LRP4RAGError, match=r"OwnKernel.*push")  # it may do more than its weight says
    with relevance_mode(other) as flow, refused:
        flow.pull(TOKENS)


@pytest.mark.parametrize(
    ("quantised_by", "named"),
    [(int8, "Linear with Int8Tensor weights"), (nf4, "Linear4bit"), (llm_int8, "Linear8bitLt")],
)
def test_pull_names_the_layer_and_push_before_any_replay(quantised_by, named: str) -> None:
    quantised, _ = pair("phi3", quantised_by)

    def replayed(*_: object, **__: object) -> None:
        raise AssertionError("the model was replayed first")

    with relevance_mode(quantised) as flow:
        handle = quantised.model.layers[0].register_forward_pre_hook(replayed)
        with pytest.raises(LRP4RAGError, match=rf"{named} gives no derivatives.*Use push"):
            flow.pull(TOKENS)
        handle.remove()


def test_pull_works_where_only_the_head_is_quantised() -> None:
    original = build("llama")
    quantised = copy.deepcopy(original)
    config = quantise.ao.Int8WeightOnlyConfig()
    quantise.ao.quantize_(quantised, config, lambda layer, _: layer is quantised.lm_head)
    with relevance_mode(twin(quantised, original)) as flow:
        expected = flow.pull(TOKENS)
    with relevance_mode(quantised) as flow:
        assert_close(flow.pull(TOKENS), expected, FLOAT32)

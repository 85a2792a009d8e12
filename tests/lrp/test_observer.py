"""An observer sees every layer of a replay once for each chunk of positions, and changes nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.memory import Sizes
from tests.lrp import tiny_families
from tests.lrp.checks import assert_close, random_weights, some_families
from tests.tiny import random_tokens, tiny_llama

PROMPT = random_tokens(33, 1).prompt_ids
RESPONSE = random_tokens(1, 6, seed=6).response_ids


class Recorder:
    """Everything it is shown since the last start."""

    def __init__(self) -> None:
        self.starts = 0

    def start(self, scale: Tensor) -> None:
        self.starts, self.scale = self.starts + 1, scale
        self.layers: list[tuple[int, Tensor, Tensor]] = []
        self.blocks: list[tuple[int, slice, slice, Tensor]] = []

    def layer(self, k: int, primal: Tensor, tangents: Tensor) -> None:
        self.layers.append((k, primal.clone(), tangents.clone()))

    def attention(self, k: int, rows: slice, keys: slice, p: Tensor) -> None:
        self.blocks.append((k, rows, keys, p.clone()))

    def of_layer(self, k: int) -> tuple[Tensor, Tensor]:
        """Primal (B, n, d) and tangents (T, B, n, d), their scale taken out, of all chunks."""
        primal = torch.cat([one for layer, one, _ in self.layers if layer == k], 1)
        tangents = torch.cat([one for layer, _, one in self.layers if layer == k], 2)
        return primal, tangents * self.scale[..., None, None]

    def probabilities(self, k: int, keys: int) -> Tensor:
        """(heads, queries, keys) of a layer of one pass, 0 where a block did not look."""
        whole = []
        for layer, _, seen, p in self.blocks:
            if layer == k:
                row = p.new_zeros((*p.shape[1:-1], keys))
                row[..., seen] = p[0]
                whole.append(row)
        return torch.cat(whole, -2).flatten(0, 1)

    def assert_equal(self, other: Recorder) -> None:
        for k in range(3):
            for actual, expected in zip(self.of_layer(k), other.of_layer(k), strict=True):
                assert_close(actual, expected, 1e-10)


@some_families
def test_states_and_attention_are_the_models_own(name: str) -> None:
    model, recorder = tiny_families.build(name), Recorder()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        plain = model(
            torch.tensor([PROMPT]), output_hidden_states=True, output_attentions=True, use_cache=False
        )
    with relevance_mode(model, "cp_lrp", sizes=Sizes(queries=8)) as flow:
        flow.prefix(PROMPT, random_weights(3, 33), observer=recorder)
    layers = model.config.num_hidden_layers
    assert recorder.starts == 1
    assert [k for k, _, _ in recorder.layers] == list(range(layers))
    for k in range(layers):
        primal, tangents = recorder.of_layer(k)
        assert tangents.shape == (3, 1, 33, 48)
        if k < layers - 1:  # the last of the model's states is after its final norm
            assert_close(primal, plain.hidden_states[k + 1], 1e-5)
        seen = [rows for layer, rows, _, _ in recorder.blocks if layer == k]
        assert seen == [slice(start, min(start + 8, 33)) for start in range(0, 33, 8)]
        assert_close(recorder.probabilities(k, 33), plain.attentions[k][0], 1e-5)


def test_the_response_is_seen_without_its_last_token_and_nothing_afterwards(llama) -> None:
    before, after = Recorder(), Recorder()
    weights = random_weights(2, 33)
    with relevance_mode(llama) as flow:
        prefix = flow.prefix(PROMPT, weights, observer=before)
        expected = prefix.states(RESPONSE)
        states = prefix.states(RESPONSE, observer=after)
        assert torch.equal(states.primal, expected.primal)
        assert torch.equal(states.tangents, expected.tangents)
        assert [k for k, _, _ in after.layers] == [0, 1, 2]
        assert after.layers[0][1].shape == (1, 5, 48)
        prefix.states(RESPONSE[:1], observer=after)  # one token: what predicts it was seen before
        flow.prefix(PROMPT, weights)
        flow.push(random_tokens(5, 2), random_weights(1, 5))
    llama(torch.tensor([PROMPT]))
    assert (before.starts, after.starts) == (1, 1)
    assert len(before.layers) == len(after.layers) == 3


def test_after_memory_ran_out_only_the_repeated_replay_counts() -> None:
    model, weights, failures = tiny_llama(), random_weights(2, 33), [None] * 2
    expected, recorder = Recorder(), Recorder()

    def run_out(*_: object) -> None:
        if failures:
            failures.pop()
            raise torch.OutOfMemoryError("CUDA out of memory")

    with relevance_mode(model) as flow:
        state = flow.prefix(PROMPT, weights, observer=expected).state
        model.model.layers[1].mlp.gate_proj.register_forward_pre_hook(run_out)
        retried = flow.prefix(PROMPT, weights, observer=recorder)
        assert_close(retried.state.primal, state.primal, 1e-10)
        assert_close(retried.push(RESPONSE), flow.prefix(PROMPT, weights).push(RESPONSE), 1e-10)
    assert recorder.starts == 3
    assert [k for k, _, _ in recorder.layers] == [0, 1, 2]
    recorder.assert_equal(expected)

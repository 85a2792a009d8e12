"""ReDeEP: scores against plain computations on a tiny reader, choice and marks on scores made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from experiments.cache import Cache
from experiments.systems import redeep
from experiments.systems.redeep import (
    REDEEP_CHUNK,
    REDEEP_TOKEN,
    Combination,
    Parts,
    candidates_on,
    correlations,
    divergence,
    external_context,
    most_attended,
    passage_sentences,
    redeep_scores,
    trace_of,
)
from experiments.systems.resources import Resources
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in
from tests.experiments.systems import stand_ins
from tests.experiments.systems.stand_ins import judged, rows_of, towns
from tests.tiny import bridge_example

RESPONSE = "It was opened in 1901. The café stands near the river."
EXAMPLE = bridge_example(1, response=RESPONSE)


def embed(texts):
    """A unit vector of each text, from its letters."""
    counts = np.array([[text.count(letter) + 0.1 for letter in "aeinorst"] for text in texts], np.float32)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def plain(model, encoded):
    """Attention (L, H, 1 + t, n), last states, and divergences (L, 1 + t), from the prompt's last token
    on, as transformers and scipy give them."""
    ids, n = [*encoded.prompt_ids, *encoded.response_ids], len(encoded.prompt_ids)
    added = []
    hooks = [
        layer.self_attn.register_forward_hook(lambda *call: added.append(call[2][0][0]))
        for layer in model.model.layers
    ]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
        knowledge = []
        for layer, state, attended in zip(model.model.layers, output.hidden_states, added, strict=False):
            before = state[0] + attended
            after = before + layer.mlp(layer.post_attention_layernorm(before))
            shares = [model.lm_head(model.model.norm(one)).softmax(-1).numpy() for one in (before, after)]
            knowledge.append(jensenshannon(*shares, axis=1)[n - 1 :] ** 2)
    model.set_attn_implementation("sdpa")
    for hook in hooks:
        hook.remove()
    attention = torch.stack(output.attentions)[:, 0, :, n - 1 :, :n].numpy()
    return attention, output.hidden_states[-1][0].numpy(), np.array(knowledge)


def cosine(first, second):
    return first @ second / np.linalg.norm(first) / np.linalg.norm(second)


@pytest.fixture(scope="module")
def measured(tiny_reader):
    """Of one response: its encoding, what the plain computation gives, and what is measured."""
    encoded = tiny_reader.encode(EXAMPLE)
    return encoded, plain(tiny_reader.model, encoded), redeep_scores(tiny_reader, embed, EXAMPLE)


def test_scores_are_those_of_a_plain_computation(measured):
    encoded, (attention, final, knowledge), scores = measured
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    assert scores.ecs.shape == (2, 6, t)
    for layer, head, token in np.ndindex(scores.ecs.shape):
        read = np.argsort(-attention[layer, head, token])[: n // 10]
        expected = cosine(final[read].mean(axis=0), final[n + token - 1])  # where it is predicted
        assert scores.ecs[layer, head, token] == pytest.approx(expected, abs=1e-4)
    assert scores.pks == pytest.approx(knowledge[:, :-1], abs=1e-4)
    assert scores.pks.max() > 0.01
    assert scores.tokens.tolist() == [list(span) for span in encoded.response_offsets]


def test_chunks_are_paired_by_mean_attention(measured):
    encoded, (attention, _, knowledge), scores = measured
    assert scores.spans.tolist() == [list(span) for span in sentences_in(RESPONSE)]
    sources = passage_sentences(encoded)
    for k, (start, end) in enumerate(scores.spans):
        # A token is its last character's: what is white space alone is that of the sentence before.
        last = np.array(encoded.response_offsets)[:, 1] - 1
        own = np.flatnonzero(np.searchsorted(scores.spans[:, 0], last, side="right") - 1 == k)
        assert scores.chunk_pks[:, k] == pytest.approx(knowledge[:, 1:][:, own].mean(axis=1), abs=1e-4)
        for layer, head in np.ndindex(scores.ecs.shape[:2]):
            rows = attention[layer, head, 1:][own]
            looked_at = max(sources, key=lambda one: rows[:, list(one.tokens)].mean())
            expected = cosine(*embed([RESPONSE[start:end], looked_at.label]))
            assert scores.chunk_ecs[layer, head, k] == pytest.approx(expected, abs=1e-4)


def test_sources_are_sentences_of_passages_alone(tiny_reader):
    example = bridge_example(1, passages=["One is here. Two is there.", "Three"])
    encoded = tiny_reader.encode(example)
    found = passage_sentences(encoded)
    assert [unit.label.strip() for unit in found] == ["One is here.", "Two is there.", "Three"]
    assert all(encoded.segments[token] >= 2 for unit in found for token in unit.tokens)


def test_the_reader_is_as_it_was_also_after_an_error(tiny_reader):
    def hooks():
        return [[*one._forward_hooks, *one._forward_pre_hooks] for one in model.modules()]

    model = tiny_reader.model
    before, usual = model.config._attn_implementation, hooks()
    redeep_scores(tiny_reader, embed, EXAMPLE)
    with pytest.raises(IndexError):
        trace_of(model, torch.tensor([[10**6] * 5]), torch.ones(1, 2), torch.ones(1, 3))
    assert model.config._attn_implementation == before != "eager"
    assert hooks() == usual


def test_another_layout_is_refused():
    with pytest.raises(InputError, match="unsupported architecture 'Linear'"):
        trace_of(torch.nn.Linear(2, 2), torch.tensor([[0]]), torch.ones(1, 1), torch.ones(1, 1))


def test_divergence_is_0_of_equals_and_log_2_of_what_shares_nothing():
    one, other, even = torch.tensor([[100.0, 0]]), torch.tensor([[0, 100.0]]), torch.tensor([[3.0, 3]])
    assert divergence(one, one + 5).item() == pytest.approx(0, abs=1e-6)
    assert divergence(one, other).item() == pytest.approx(np.log(2))
    # Between (1, 0) and (1/2, 1/2): the entropy of their mean (3/4, 1/4) is 0.5623, theirs are 0 and log 2.
    assert divergence(one, even).item() == pytest.approx(0.5623 - np.log(2) / 2, abs=1e-4)


def test_a_tenth_of_the_prompt_is_read_and_at_least_one_token():
    attention = torch.arange(20.0).roll(3)[None]  # 19 is third, 18 second, 17 first
    assert most_attended(attention).nonzero()[:, 1].tolist() == [1, 2]
    assert most_attended(torch.tensor([[0.1, 0.5, 0.4]])).tolist() == [[False, True, False]]


def test_context_is_a_cosine_with_the_mean_of_what_is_read():
    # Two prompt tokens, of which the second predicts the one response token.
    final = torch.tensor([[1.0, 0], [2, 2], [0, 1]])
    read = torch.tensor([[[True, False]], [[False, True]]])
    assert external_context(read, final)[:, 0].tolist() == pytest.approx([0.5**0.5, 1])


def test_correlations_are_pearsons_and_0_of_constants():
    inputs = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    labels = inputs[:, 0] > 0
    expected = [np.corrcoef(inputs[:, k], labels)[0, 1] for k in range(3)]
    assert correlations(inputs, labels) == pytest.approx(expected)
    assert correlations(np.full((20, 2), 0.3), labels) == pytest.approx([0, 0], abs=1e-6)


def test_the_planted_head_and_layer_are_chosen():
    labels = np.arange(20) % 2 == 1
    inputs = 0.1 * np.random.default_rng(0).normal(size=(20, 9))
    inputs[:, 2] -= 3 * labels  # a head that falls
    inputs[:, 4] += 3 * labels  # one that rises: not the context's doing
    inputs[:, 7] += 2 * labels  # a layer that rises
    inputs[:, 8] -= 3 * labels
    model = Combination(split=6, heads=1, layers=1, ratio=4.0).fit(inputs, labels)
    assert np.flatnonzero(model.weights_).tolist() == [2, 7]
    assert model.weights_[2] == pytest.approx(-4 / inputs[:, 2].std())
    assert model.weights_[7] == pytest.approx(1 / inputs[:, 7].std())
    scores = model.decision_function(inputs)
    assert scores[labels].min() > scores[~labels].max()
    assert len(candidates_on(inputs, 6)) == 27


def test_sums_of_heads_and_layers_share_one_weight_each():
    labels = np.arange(20) % 2 == 1
    inputs = np.random.default_rng(1).normal(size=(20, 5))
    weights = Combination(split=3, heads=2, layers=9, ratio=0.5).fit(inputs, labels).weights_
    chosen = np.flatnonzero(weights[:3])
    assert len(chosen) == 2
    assert weights[chosen] == pytest.approx([-0.5 / inputs[:, chosen].sum(axis=1).std()] * 2)
    assert weights[3:] == pytest.approx([1 / inputs[:, 3:].sum(axis=1).std()] * 2)  # there are no nine


@pytest.fixture
def resources(tmp_path, monkeypatch):
    """Measures nothing: its reader has a name only. `asked` is how often it would have."""
    asked = []
    measure = lambda *given: asked.append(1) or stand_ins.redeep_scores(*given)  # noqa: E731
    monkeypatch.setattr(redeep, "redeep_scores", measure)
    resources = Resources(Cache(tmp_path))
    identity = SimpleNamespace(name="none", digest="0", dtype="float32")
    resources.once("reader", lambda: SimpleNamespace(identity=identity))
    resources.once("embedder", lambda: embed)
    return resources, asked


ROWS = rows_of(towns(40))


def test_tokens_and_sentences_share_what_was_measured(resources):
    resources, asked = resources
    REDEEP_TOKEN.fit(ROWS, resources)
    fitted = REDEEP_CHUNK.fit(ROWS, resources)
    assert fitted.chosen.endswith(" to 1")
    assert len(asked) == 40
    chunks = judged(fitted, ROWS, resources)
    assert [[part[3] for part in one.parts] for one in chunks] == [[flag] for flag in ROWS.labels]


def test_a_response_is_as_suspect_as_its_parts_are_on_average(resources):
    resources, _ = resources
    fitted = REDEEP_TOKEN.fit(ROWS, resources)
    reading = fitted.read(ROWS.select([1, 2]), resources)
    assert reading.scores == pytest.approx([part.scores.mean() for part in reading.parts])


def test_parts_hold_heads_then_layers():
    scores = stand_ins.redeep_scores(None, None, bridge_example(1, response="a bb ccc"))
    parts = Parts.tokens(scores)
    assert (parts.inputs.shape, parts.heads) == ((3, 9), 6)
    assert parts.inputs[2, 1 * 2 + 1] == scores.ecs[1, 1, 2]
    assert parts.inputs[2, 6 + 1] == scores.pks[1, 2]
    assert parts.spans.tolist() == [[0, 1], [2, 4], [5, 8]]
    assert Parts.sentences(scores).inputs.shape == (1, 9)

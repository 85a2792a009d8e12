"""ReDeEP: scores against plain computations on a tiny reader, choice and marks on scores made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems import redeep
from lrp4rag.experiments.systems.redeep import (
    REDEEP_CHUNK,
    REDEEP_TOKEN,
    Combination,
    Parts,
    candidates_on,
    correlations,
)
from lrp4rag.experiments.systems.redeep_scores import (
    RedeepScores,
    divergence,
    external_context,
    most_attended,
    passage_sentences,
    redeep_scores,
    trace_of,
)
from lrp4rag.experiments.systems.resources import Resources
from lrp4rag.reader import load_reader
from lrp4rag.sentences import split_sentences
from lrp4rag.training.rows import Rows
from tests.tiny import bridge_example, save_tiny_reader
from tests.training.labelled import examples, extraction

RESPONSE = "It was opened in 1901. The café stands near the river."


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return load_reader(str(save_tiny_reader(tmp_path_factory.mktemp("reader"))), device="cpu")


def embed(texts):
    """A unit vector of each text, from its letters."""
    counts = np.array([[text.count(letter) + 0.1 for letter in "aeinorst"] for text in texts], np.float32)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def plain(model, ids, n):
    """Attention (L, H, 1 + t, n), last states, and divergences (L, 1 + t), from the prompt's last token
    on, as transformers and scipy give them."""
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


def hooks_of(model):
    return [[*module._forward_hooks, *module._forward_pre_hooks] for module in model.modules()]


def cosine(first, second):
    return first @ second / np.linalg.norm(first) / np.linalg.norm(second)


def test_scores_are_those_of_a_plain_computation(reader):
    example = bridge_example(1, response=RESPONSE)
    encoded = reader.encode(example)
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    attention, final, knowledge = plain(reader.model, [*encoded.prompt_ids, *encoded.response_ids], n)
    scores = redeep_scores(reader, embed, example)
    assert scores.ecs.shape == (2, 6, t)
    for layer, head, token in np.ndindex(scores.ecs.shape):
        read = np.argsort(-attention[layer, head, token])[: n // 10]
        expected = cosine(final[read].mean(axis=0), final[n + token - 1])  # where it is predicted
        assert scores.ecs[layer, head, token] == pytest.approx(expected, abs=1e-4)
    assert scores.pks == pytest.approx(knowledge[:, :-1], abs=1e-4)
    assert scores.pks.max() > 0.01
    assert scores.tokens.tolist() == [list(span) for span in encoded.response_offsets]


def test_chunks_are_paired_by_mean_attention(reader):
    example = bridge_example(1, response=RESPONSE)
    encoded = reader.encode(example)
    n = len(encoded.prompt_ids)
    ids = [*encoded.prompt_ids, *encoded.response_ids]
    attention, _, knowledge = plain(reader.model, ids, n)
    scores = redeep_scores(reader, embed, example)
    assert scores.spans.tolist() == [list(span) for span in split_sentences(RESPONSE)]
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


def test_sources_are_sentences_of_passages_alone(reader):
    example = bridge_example(1, passages=["One is here. Two is there.", "Three"])
    encoded = reader.encode(example)
    found = passage_sentences(encoded)
    assert [unit.label.strip() for unit in found] == ["One is here.", "Two is there.", "Three"]
    assert all(encoded.segments[token] >= 2 for unit in found for token in unit.tokens)


def test_the_reader_is_as_it_was_also_after_an_error(reader):
    example = bridge_example(1)
    encoded = reader.encode(example)
    weights = torch.ones(1, len(encoded.response_ids)), torch.ones(1, len(encoded.prompt_ids))
    before, hooks = reader.model.config._attn_implementation, hooks_of(reader.model)
    redeep_scores(reader, embed, example)
    with pytest.raises(IndexError):
        trace_of(reader.model, torch.tensor([[10**6] * 5]), *weights)
    assert reader.model.config._attn_implementation == before != "eager"
    assert hooks_of(reader.model) == hooks


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


def made_up(example):
    """Scores that tell odd bridges, whose name is annotated, from even ones; a word is a token."""
    odd, noise = int(example.id[-1]) % 2, np.random.default_rng(len(example.response))
    words = example.response.split()
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    ecs, pks = noise.normal(0, 0.05, (3, 2, len(words))), noise.uniform(0, 0.05, (3, len(words)))
    ecs[1, 1, 0] -= odd
    pks[2, 0] += odd / 2
    return RedeepScores(
        ecs=ecs.astype(np.float32),
        pks=pks.astype(np.float32),
        chunk_ecs=ecs.mean(-1, keepdims=True).astype(np.float32),
        chunk_pks=pks.mean(-1, keepdims=True).astype(np.float32),
        tokens=np.array([(end - len(word), end) for word, end in zip(words, ends, strict=True)]),
        spans=np.array([(0, len(example.response))]),
    )


@pytest.fixture
def rows(tmp_path):
    made = examples(40)
    return Rows(extraction(made, tmp_path / "s").store, tuple(made))


@pytest.fixture
def resources(tmp_path, monkeypatch):
    """Measures nothing: its reader has a name only."""
    asked = []
    monkeypatch.setattr(redeep, "redeep_scores", lambda _, __, one: asked.append(one.id) or made_up(one))
    resources = Resources(tmp_path / "resources")
    identity = SimpleNamespace(name="none", digest="0", dtype="float32")
    resources.once("reader", lambda: SimpleNamespace(identity=identity))
    resources.once("embedder", lambda: embed)
    return resources, asked


def test_tokens_and_sentences_share_what_was_measured(rows, resources):
    resources, asked = resources
    REDEEP_TOKEN.fit(rows, resources)
    fitted = REDEEP_CHUNK.fit(rows, resources)
    assert fitted.chosen.endswith(" to 1")
    assert len(asked) == 40
    chunks = fitted.score(rows, resources)
    assert [[part.marked for part in one.suspects] for one in chunks] == [[flag] for flag in rows.labels]


def test_a_response_is_as_suspect_as_its_parts_are_on_average(rows, resources):
    resources, _ = resources
    tokens = REDEEP_TOKEN.fit(rows, resources)
    own = rows.select([1])
    (score,) = tokens.score(own, resources)
    scores = made_up(own.examples[0])
    inputs = np.concatenate([scores.ecs.reshape(-1, len(scores.tokens)), scores.pks])
    by_hand = [float(tokens.model @ inputs[:, k]) for k in range(len(scores.tokens))]
    assert [part.score for part in score.suspects] == pytest.approx(by_hand)
    expected = tokens.calibration.probabilities(np.array([np.mean(by_hand)]), own.generators)
    assert score.probability == pytest.approx(expected[0])
    # Context counts against suspicion, knowledge for it.
    assert (tokens.model[:6] <= 0).all()
    assert (tokens.model[6:] >= 0).all()


def test_parts_hold_heads_then_layers():
    scores = made_up(bridge_example(1, response="a bb ccc"))
    parts = Parts.tokens(scores)
    assert (parts.inputs.shape, parts.heads) == ((3, 9), 6)
    assert parts.inputs[2, 1 * 2 + 1] == scores.ecs[1, 1, 2]
    assert parts.inputs[2, 6 + 1] == scores.pks[1, 2]
    assert parts.spans.tolist() == [[0, 1], [2, 4], [5, 8]]
    assert Parts.sentences(scores).inputs.shape == (1, 9)

"""Signals against the plain model, separate flows, and sequences put together by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.stats
import torch

from experiments.tokens.signals import FAST, FULL, PromptSignals, Signals, Wanted
from lrp4rag.lrp import prefix, relevance_mode
from lrp4rag.lrp.attribution import own_weights, segment_weights
from lrp4rag.lrp.replay import pad_columns
from lrp4rag.reader import Encoded
from lrp4rag.reader.encoding import encode
from lrp4rag.util.errors import InputError
from tests.lrp import tiny_families
from tests.tiny import Tokens, bridge_example, tiny_tokenizer

pytestmark = pytest.mark.usefixtures("double")

LAYERS = {"qwen2": 5, "gemma2": 4}
ANSWERS = ["It was opened in 1900.", "no", "The river runs under it. Nobody knows when it was opened."]

families = pytest.mark.parametrize("name", LAYERS)


@cache
def tokenizer():
    return tiny_tokenizer()


@cache
def model_of(name: str):
    return tiny_families.build(
        name, vocab_size=len(tokenizer()), num_hidden_layers=LAYERS.get(name, 5 if name == "llama" else 3)
    )


def encoded(response: str = ANSWERS[0], k: int = 0, **parts) -> Encoded:
    return encode(bridge_example(k, response=response, **parts), tokenizer())


def signals_of(name: str, one: Encoded, other: Encoded | None = None, composite: str = "attnlrp") -> Signals:
    with relevance_mode(model_of(name), composite) as flow:
        return PromptSignals(flow, one, other).of(one)[0]


def plain_logits(name: str, prompt: tuple[int, ...], response: tuple[int, ...]) -> torch.Tensor:
    """(t, vocabulary), of the ordinary model."""
    with torch.no_grad():
        logits = model_of(name)(Tokens(prompt, response).ids, use_cache=False).logits
    return logits[0, len(prompt) - 1 :]


def plain_logprobs(name: str, prompt: tuple[int, ...], response: tuple[int, ...]) -> np.ndarray:
    logprobs = plain_logits(name, prompt, response).log_softmax(-1).numpy()
    return logprobs[np.arange(len(response)), list(response)]


def close(actual: np.ndarray, expected, tolerance: float = 1e-9) -> None:
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max()))


@families
@pytest.mark.parametrize("composite", ["attnlrp", "cp_lrp"])
@pytest.mark.parametrize("answer", ANSWERS[:2])
def test_relevance_by_segment_and_target(name: str, composite: str, answer: str) -> None:
    one = encoded(answer)
    found = signals_of(name, one, composite=composite)
    with relevance_mode(model_of(name), composite) as flow:
        expected = flow.read(one, segment_weights(one), ["response", "largest", "mean"])
        close(found.logits, flow.explained_logits)
    for array, rows in zip(
        (found.by_segment, found.largest_by_segment, found.mean_by_segment), expected, strict=True
    ):
        close(array, rows)


@families
def test_cp_relevance_of_the_origins(name: str) -> None:
    one = encoded()
    found, columns = signals_of(name, one), len(one.prompt_ids) + len(one.response_ids) - 1
    by_segment = segment_weights(one)  # template, question, passages
    prompt = torch.stack([by_segment[2:].sum(0), by_segment[1], by_segment[0]])
    weights = torch.cat([pad_columns(prompt, columns), own_weights(one)])
    with relevance_mode(model_of(name), "cp_lrp") as flow:
        close(found.cp_by_segment, flow.push(one, weights))
    if name == "qwen2":  # a bias is a source of its own
        assert np.abs(found.cp_by_segment.sum(0) - found.logits).max() > 0.01
    else:
        close(found.cp_by_segment.sum(0), found.logits)


@families
def test_likelihood_against_the_plain_model(name: str) -> None:
    one = encoded()
    logits = plain_logits(name, one.prompt_ids, one.response_ids).numpy()
    one = replace(one, response_ids=(int(logits[0].argmax()), *one.response_ids[1:]))  # of rank 0
    found, logits = signals_of(name, one), plain_logits(name, one.prompt_ids, one.response_ids).numpy()
    close(found.logits, logits[np.arange(len(logits)), list(one.response_ids)])
    close(found.logprob, plain_logprobs(name, one.prompt_ids, one.response_ids))
    close(found.entropy, scipy.stats.entropy(np.exp(logits - logits.max(-1, keepdims=True)), axis=-1))
    order = np.argsort(-logits, axis=-1)
    expected = [list(row).index(token) for row, token in zip(order, one.response_ids, strict=True)]
    assert found.rank.tolist() == expected
    assert found.rank.dtype == np.int32
    assert min(expected) == expected[0] == 0 < max(expected)
    prompt = tuple(id for id, segment in zip(one.prompt_ids, one.segments, strict=True) if segment in (0, 1))
    assert 0 < len(prompt) < len(one.prompt_ids)
    close(found.logprob_without_passages, plain_logprobs(name, prompt, one.response_ids))
    close(found.logprob_other_passages, found.logprob_without_passages)  # there are no others
    assert np.abs(found.logprob_without_passages - found.logprob).max() > 0.1


PASSAGES = ["The tower is old.", "Fish is sold there.", "A mill stands on the hill.", "It rains."]


@pytest.mark.parametrize(("own", "theirs"), [(3, 3), (3, 1), (1, 3), (2, 4)])
def test_with_the_passages_of_another_prompt(own: int, theirs: int) -> None:
    one = encoded(passages=[f"Passage {k} of the bridge." for k in range(own)])
    other = encoded(k=1, passages=PASSAGES[:theirs], question="What is sold?", response="Fish.")

    def passage(k: int) -> list[int]:
        pairs = zip(other.prompt_ids, other.segments, strict=True)
        return [token for token, segment in pairs if segment == 2 + k]

    prompt: list[int] = []
    for segment, run in itertools.groupby(
        zip(one.segments, one.prompt_ids, strict=True), key=lambda pair: pair[0]
    ):
        if segment < 2:
            prompt += [token for _, token in run]
            continue
        k = segment - 2
        # The last place takes what is left of the others.
        for theirs_k in range(k, theirs) if k == own - 1 else [k]:
            prompt += passage(theirs_k)
    found = signals_of("llama", one, other)
    close(found.logprob_other_passages, plain_logprobs("llama", tuple(prompt), one.response_ids))
    assert np.abs(found.logprob_other_passages - found.logprob_without_passages).max() > 0.1


@families
@pytest.mark.parametrize("answer", ANSWERS[:2])
def test_shapes_and_states(name: str, answer: str) -> None:
    one, model = encoded(answer), model_of(name)
    with relevance_mode(model) as flow:
        found, states = PromptSignals(flow, one).of(one)
    layers, t, d = LAYERS[name], len(one.response_ids), 48
    segments, origins = 5, 5 if name == "qwen2" else 4  # and the biases
    assert {key: array.shape for key, array in found.arrays().items()} == {
        "logits": (t,),
        **dict.fromkeys(("by_segment", "largest_by_segment", "mean_by_segment"), (segments, t)),
        "cp_by_segment": (4, t),
        **dict.fromkeys(("shares", "norms"), (layers, origins, t)),
        "parts": (1, origins, d),
        "part_layers": (1,),
        **dict.fromkeys(("hidden_mean", "hidden_last"), (layers + 1, d)),
        "lookback": (layers, 6, t),
        **dict.fromkeys(("logprob", "entropy", "rank"), (t,)),
        **dict.fromkeys(("logprob_without_passages", "logprob_other_passages"), (t,)),
    }
    assert all(np.isfinite(array).all() for array in found.arrays().values())
    embedded = model.get_input_embeddings()(torch.tensor([one.prompt_ids[-1], *one.response_ids[:-1]]))
    close(found.hidden_mean[0], embedded.mean(0).detach())
    close(found.hidden_last[0], embedded[-1].detach())
    with torch.no_grad():
        hidden = model(Tokens(one.prompt_ids, one.response_ids).ids, output_hidden_states=True).hidden_states
    close(found.hidden_mean[1], hidden[1][0, -t:].mean(0))
    close(found.hidden_last[1], hidden[1][0, -1])
    close(found.parts[0].sum(0), found.hidden_mean[4])
    assert states.layers.tolist() == [3] == found.part_layers.tolist()
    assert states.whole.shape == states.passages.shape == (1, t, d)
    if layers > 4:  # the last one is normalised
        close(states.whole[0], hidden[4][0, -t:])
    close(states.whole.mean(1), found.hidden_mean[[4]])
    close(states.passages.mean(1), found.parts[:, 0])
    close(np.linalg.norm(states.passages, axis=-1), found.norms[[3], 0])


def test_responses_to_one_prompt_equal_prompts_of_their_own() -> None:
    rows, other = [encoded(answer) for answer in ANSWERS], encoded(k=1)
    with relevance_mode(model_of("llama")) as flow:
        prompt = PromptSignals(flow, rows[0], other)
        shared = [prompt.of(row)[0] for row in (*rows, rows[0])]
    for row, found in zip((*rows, rows[0]), shared, strict=True):
        alone = signals_of("llama", row, other)
        for name, array in found.arrays().items():
            close(array, getattr(alone, name), 1e-10)


@pytest.mark.parametrize(("name", "composite"), [("llama", "paper"), ("mixtral", "attnlrp")])
def test_only_provenance_needs_composites_that_share_a_stack(name: str, composite: str) -> None:
    one = encoded()
    refused = rf"signals need {composite} and cp_lrp in one stack.*parts relevance,prompt"
    with relevance_mode(model_of(name), composite) as flow:
        with pytest.raises(InputError, match=refused):
            PromptSignals(flow, one, None)
        found, states = PromptSignals(flow, one, wanted=FAST, staged=True).of(one)
        expected = flow.push(one, segment_weights(one)[2:].sum(0, keepdim=True))[0]
    assert states.passages is None
    close(found.passages, expected, 1e-6 if name == "mixtral" else 1e-9)


def test_experts_have_signals_under_cp_lrp() -> None:
    one = encoded()
    found = signals_of("mixtral", one, composite="cp_lrp")
    close(found.by_segment.sum(0) + found.cp_by_segment[3], found.logits, 1e-6)
    close(found.shares.sum(1), np.ones((3, len(one.response_ids))), 1e-6)
    assert len(found.parts) == len(found.part_layers) == 0


ALWAYS = {"logits", "hidden_mean", "hidden_last", "lookback", "logprob", "entropy", "rank"}
SEGMENTS = {"by_segment", "largest_by_segment", "mean_by_segment"}
MERGED = {"passages", "largest_passages", "mean_passages"}
PROVENANCE = {"cp_by_segment", "shares", "norms", "parts", "part_layers"}
WITHOUT, OTHER = {"logprob_without_passages"}, {"logprob_other_passages"}

SUBSETS = [
    (FULL, ALWAYS | SEGMENTS | PROVENANCE | WITHOUT),
    (FAST, ALWAYS | MERGED),
    (Wanted(provenance=False), ALWAYS | SEGMENTS | WITHOUT | OTHER),
    (Wanted(each_segment=False), ALWAYS | MERGED | PROVENANCE | WITHOUT | OTHER),
    (replace(FAST, other_passages=True), ALWAYS | MERGED | OTHER),
    (replace(FAST, without_passages=True), ALWAYS | MERGED | WITHOUT),
]


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_a_part_of_the_signals_equals_that_of_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "STAGE", 5)
    one, other = encoded(), encoded(k=1)
    with relevance_mode(model_of(name)) as flow:
        every, states = (part.arrays() for part in PromptSignals(flow, one, other).of(one))
        for key in SEGMENTS:
            every[key.replace("by_segment", "passages")] = every[key][2:].sum(0)
        for (wanted, names), staged in itertools.product(SUBSETS, (False, True)):
            found, of_states = PromptSignals(flow, one, other, wanted, staged=staged).of(one)
            assert set(found.arrays()) == names
            assert ("passages" in of_states.arrays()) == wanted.provenance
            for key, array in found.arrays().items():
                assert array.dtype == every[key].dtype
                close(array, every[key])
            for key, array in of_states.arrays().items():
                close(array, states[key])


def test_passages_first_and_last() -> None:
    """What the prompts share may be nothing, and nothing may follow the passages."""
    one = encoded()
    n = len(one.prompt_ids)
    for segments in ([2] * 9 + [0] * (n - 9), [0, 1] + [2] * (n - 2), [0] * (n - 1) + [2]):
        moved = replace(one, segments=tuple(segments), segment_names=("template", "question", "passage 1"))
        with relevance_mode(model_of("llama")) as flow:
            every = PromptSignals(flow, moved, None).of(moved)[0].arrays()
            every["passages"] = every["by_segment"][2]
            for wanted in (FAST, FULL):
                found = PromptSignals(flow, moved, None, wanted, staged=True).of(moved)[0].arrays()
                for key in set(found) & set(every):
                    close(found[key], every[key])

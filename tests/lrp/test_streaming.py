"""Relevance while generating equals relevance of the finished tokens, however they were generated."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.streaming import Sampling, recording, running_below, stream
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import composites, model_of, random_weights, some_families, state_of
from tests.tiny import Tokens, random_tokens

PROMPT = random_tokens(19, 1).prompt_ids
OPTIONS = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
IDS = torch.tensor([PROMPT])


def generate(model, ids: torch.Tensor = IDS, **options) -> torch.Tensor:
    return model.generate(ids, **(OPTIONS | {"attention_mask": torch.ones_like(ids)} | options))


def assert_equal(actual: np.ndarray, expected: torch.Tensor) -> None:
    assert actual.shape == tuple(expected.shape)
    error = np.abs(actual - expected.numpy()).max() / float(expected.abs().max())
    assert error < 1e-5


@some_families
@composites
def test_stream_and_recording_equal_generation_and_the_replay_of_it(name: str, composite: str) -> None:
    model, weights = model_of(name), random_weights(3, 19)
    expected = generate(model)
    written = tuple(expected[0, 19:].tolist())
    with relevance_mode(model, composite) as flow:
        tokens = list(stream(flow, PROMPT, weights, max_new_tokens=8))
        with recording(flow, weights) as record:
            assert torch.equal(generate(model, stopping_criteria=[record]), expected)
        whole = flow.push(Tokens(PROMPT, written), weights)
        logits = flow.explained_logits.numpy()
    assert tuple(token.id for token in tokens) == written
    assert_equal(np.stack([token.relevance for token in tokens], 1), whole)
    assert_equal(record.relevance[:, 0], whole)
    np.testing.assert_allclose([token.logit for token in tokens], logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(record.logits[0], logits, rtol=1e-4, atol=1e-5)


@some_families
def test_recording_of_a_left_padded_batch(name: str) -> None:
    """Two prompts of unequal length, as `generate` wants them; each equals its own replay."""
    model = model_of(name)
    short, weights = PROMPT[:12], [random_weights(2, 19), random_weights(2, 12, seed=1)]
    ids = torch.tensor([PROMPT, (0,) * 7 + short])
    mask = torch.ones_like(ids)
    mask[1, :7] = 0
    padded = torch.nn.functional.pad(weights[1], (7, 0))
    with relevance_mode(model) as flow:
        with recording(flow, torch.stack([weights[0], padded], 1)) as record:
            output = generate(model, ids, attention_mask=mask, stopping_criteria=[record])
        for row, prompt in enumerate((PROMPT, short)):
            whole = flow.push(Tokens(prompt, tuple(output[row, 19:].tolist())), weights[row])
            assert_equal(record.relevance[:, row], whole)


def test_sampling_inside_generate_and_its_batch(llama) -> None:
    weights, options = random_weights(2, 19), {"do_sample": True, "num_return_sequences": 3}
    with relevance_mode(llama) as flow:
        torch.manual_seed(0)
        expected = generate(llama, **options)
        torch.manual_seed(0)
        with recording(flow, weights) as record:
            output = generate(llama, stopping_criteria=[record], **options)
        assert torch.equal(output, expected)
        for row in range(3):
            whole = flow.push(Tokens(PROMPT, tuple(output[row, 19:].tolist())), weights)
            assert_equal(record.relevance[:, row], whole)


@pytest.mark.parametrize("given", [False, True], ids=["the model's", "this call's"])
def test_after_the_end_of_a_sequence_relevance_is_nan(
    llama, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end-of-sequence token is that of the model's configuration, or of this call."""
    ids = torch.tensor([PROMPT, PROMPT[::-1]])
    options = {}
    first = generate(llama, ids)[:, 19:]
    end = next(token for token in first[0].tolist() if token not in first[1].tolist())
    if given:
        options["eos_token_id"] = end
    else:
        monkeypatch.setattr(llama.generation_config, "eos_token_id", end)
    before, stop_ids = state_of(llama), [end] if given else None
    with relevance_mode(llama) as flow:
        with recording(flow, random_weights(1, 19), stop_ids=stop_ids) as record:
            generate(llama, ids, stopping_criteria=[record], **options)
        assert llama(IDS.expand(3, -1)).logits.shape[0] == 3  # plain again
    assert state_of(llama) == before
    known = np.isfinite(record.relevance[0])
    last = first[0].tolist().index(end)
    assert last < 7
    assert known[0].tolist() == [k <= last for k in range(8)]
    assert known[1].all()


def test_streams_and_recordings_stop_where_they_are_told(llama) -> None:
    weights = random_weights(1, 19)
    with relevance_mode(llama) as flow:
        whole = list(stream(flow, PROMPT, weights, max_new_tokens=8))
        assert len(list(stream(flow, PROMPT, weights, max_new_tokens=3))) == 3
        assert len(list(stream(flow, PROMPT, weights, stop=lambda tokens: len(tokens) == 4))) == 4
        ended = list(stream(flow, PROMPT, weights, max_new_tokens=8, stop_ids=[whole[2].id]))
        assert len(ended) == [token.id for token in whole].index(whole[2].id)
        never = stream(flow, PROMPT, weights, max_new_tokens=8, stop=running_below(-1e9, 2))
        assert len(list(never)) == 8
        with recording(flow, weights, stop=lambda relevance: relevance.shape[-1] == 3) as record:
            assert generate(llama, stopping_criteria=[record]).shape[1] == 19 + 3
        assert record.relevance.shape == (1, 1, 3)
        always = stream(flow, PROMPT, weights, max_new_tokens=8, stop=running_below(1e9, 2))
        assert len(list(always)) == 2


def test_sampling_is_seeded_and_follows_the_distribution(llama) -> None:
    with relevance_mode(llama) as flow:

        def drawn(sampling: Sampling | None) -> list[int]:
            tokens = stream(flow, PROMPT, random_weights(1, 19), max_new_tokens=6, sampling=sampling)
            return [token.id for token in tokens]

        assert drawn(Sampling(1.5, seed=1)) == drawn(Sampling(1.5, seed=1)) != drawn(Sampling(1.5, seed=2))
        assert drawn(Sampling(1.5, top_k=1)) == drawn(None)


@pytest.mark.parametrize(
    ("width", "options", "message"),
    [
        (19, {"use_cache": False}, "with a cache"),
        (19, {"num_beams": 2}, "several beams"),
        (19, {"cache_implementation": "static"}, "static caches are not supported"),
        *((width, {}, f"weights of {width} tokens for a prompt of 19") for width in (12, 18, 20, 26)),
    ],
)
def test_what_cannot_be_recorded_is_refused(llama, width: int, options, message: str) -> None:
    refused = pytest.raises(LRP4RAGError, match=message)
    with relevance_mode(llama) as flow, recording(flow, random_weights(1, width)) as record, refused:
        generate(llama, stopping_criteria=[record], **options)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(-1, 0, 1), (float("nan"), 0, 1), (float("inf"), 0, 1), (1, 0, 0), (1, 0, 1.1), (1, -1, 1)],
)
def test_sampling_out_of_range(llama, temperature: float, top_k: int, top_p: float) -> None:
    sampling = Sampling(temperature, top_k, top_p)
    with relevance_mode(llama) as flow, pytest.raises(InputError, match="top-p"):
        next(stream(flow, PROMPT, random_weights(1, 19), sampling=sampling))


@pytest.mark.parametrize("length", [1, 19])
def test_a_recording_is_of_one_generate(llama, length: int) -> None:
    ids = torch.tensor([PROMPT[:length]])
    with relevance_mode(llama) as flow:
        with recording(flow, random_weights(1, length)) as record:
            generate(llama, ids, stopping_criteria=[record])
            with pytest.raises(LRP4RAGError, match=r"one generate|one greedy search"):
                generate(llama, ids, stopping_criteria=[record])
        with pytest.raises(LRP4RAGError, match="nothing was recorded"):
            generate(llama, ids, stopping_criteria=[record])
        with recording(flow, random_weights(1, length)) as record:
            flow.push(random_tokens(5, 2), random_weights(1, 5))
            with pytest.raises(LRP4RAGError, match="nothing was recorded"):
                generate(llama, ids, stopping_criteria=[record])

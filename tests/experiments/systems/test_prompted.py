"""A prompt read once: what follows it is scored and written as if it had been read each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers import MistralConfig, MistralForCausalLM

from experiments.systems import prompted
from experiments.systems.prompted import Noise, Prompted, prompted_together
from lrp4rag.reader import Reader, load_reader
from lrp4rag.util.errors import InputError
from tests.tiny import random_tokens, save_tiny_reader, tiny_config, tiny_llama

CONTINUATIONS = ([5, 9, 2, 14, 7], [], [30], [8, 8, 41])
WINDOW = 48


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = save_tiny_reader(tmp_path_factory.mktemp("prompted") / "tiny", window=WINDOW)
    return load_reader(str(folder), device="cpu")


def prompt_of(length: int) -> list[int]:
    return list(random_tokens(length, 1).prompt_ids)


def plainly(model: torch.nn.Module, ids: Sequence[int]) -> Tensor:
    """The last token's logits without a cache."""
    with torch.no_grad():
        logits: Tensor = model(torch.tensor([ids])).logits[0, -1]
    return logits


def greedily(reader: Reader, ids: Sequence[int], count: int) -> str:
    made = reader.model.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        max_new_tokens=count,
        do_sample=False,
        pad_token_id=reader.tokenizer.eos_token_id,
    )
    text: str = reader.tokenizer.decode(made[0, len(ids) :], skip_special_tokens=True)
    return text.strip()


# What comes next.


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("length", [1, 2, 9])
def test_logits_are_those_of_the_whole_text(reader: Reader, length: int) -> None:
    model = tiny_llama(tiny_config())
    ids = prompt_of(length)
    prompt = Prompted(replace(reader, model=model), ids)
    expected = torch.stack([plainly(model, [*ids, *after]) for after in CONTINUATIONS])
    for _ in range(2):  # the first call left the cache as it was
        torch.testing.assert_close(prompt.logits_after(CONTINUATIONS), expected, rtol=1e-10, atol=1e-10)
    for after, row in zip(CONTINUATIONS, expected, strict=True):
        torch.testing.assert_close(prompt.logits_after([after])[0], row, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("length", [1, 3, 9])
@pytest.mark.parametrize("sliding_window", [4, 64])
def test_padding_takes_no_place_in_a_sliding_window(reader: Reader, length: int, sliding_window: int) -> None:
    shape = reader.model.config.to_dict() | {"model_type": "mistral", "sliding_window": sliding_window}
    torch.manual_seed(0)
    model = MistralForCausalLM(MistralConfig(**shape)).eval()
    sliding = replace(reader, model=model)
    ids = prompt_of(length)
    found = Prompted(sliding, ids).logits_after(CONTINUATIONS)
    expected = torch.stack([plainly(model, [*ids, *after]) for after in CONTINUATIONS])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    texts = Prompted(sliding, ids).sample(CONTINUATIONS, max_new_tokens=6, temperature=0)
    assert texts == [greedily(sliding, [*ids, *after], 6) for after in CONTINUATIONS]


# Samples.


@pytest.mark.parametrize("length", [1, 9])
def test_without_temperature_the_likeliest_tokens_are_written(reader: Reader, length: int) -> None:
    ids = prompt_of(length)
    texts = Prompted(reader, ids).sample(CONTINUATIONS, max_new_tokens=12, temperature=0)
    assert texts == [greedily(reader, [*ids, *after], 12) for after in CONTINUATIONS]
    assert len(set(texts)) == len(CONTINUATIONS)


def test_a_text_that_ends_early_ends_alone(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = Prompted(reader, prompt_of(9))
    whole = prompt.sample(CONTINUATIONS, max_new_tokens=12, temperature=0)
    ids = torch.tensor([[*prompt_of(9), *CONTINUATIONS[0]]])
    third = reader.model.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0)[0, -1].item()
    monkeypatch.setattr(reader.model.generation_config, "eos_token_id", third)
    texts = prompt.sample(CONTINUATIONS, max_new_tokens=12, temperature=0)
    assert texts == [greedily(reader, [*prompt_of(9), *after], 12) for after in CONTINUATIONS]
    assert len(texts[0]) < len(whole[0])
    assert texts[1:] == whole[1:]  # the others do not write that token


def test_a_seed_gives_the_same_samples_and_leaves_the_global_generator_alone(reader: Reader) -> None:
    prompt = Prompted(reader, prompt_of(9))
    state = torch.get_rng_state()
    first, again, other = (
        prompt.sample([[]] * 4, max_new_tokens=8, temperature=1.5, seed=seed) for seed in (7, 7, 8)
    )
    assert first == again != other
    assert len(set(first)) == 4  # equal continuations are not sampled alike
    assert torch.equal(torch.get_rng_state(), state)


def test_a_sample_does_not_depend_on_what_is_sampled_beside_it(reader: Reader, monkeypatch) -> None:
    ids = prompt_of(9)
    several = [[5, 6], [7, 8], [5, 6]]

    def drawn(prompt: Sequence[int], rest: Sequence[Sequence[int]]) -> list[str]:
        return Prompted(reader, prompt).sample(rest, max_new_tokens=8, temperature=1.5, seed=7)

    found = drawn(ids, several)
    assert drawn(ids, several[:1]) == found[:1]
    assert drawn(ids, several[1:2]) == found[1:2]
    assert drawn(ids, several[1:]) == [found[1], found[0]]  # the second of its kind there, the first here
    assert drawn([*ids, 5], [[6], [6]]) == [found[0], found[2]]  # nor on where the prompt is cut
    monkeypatch.setattr(prompted, "TOGETHER", 2)
    assert drawn(ids, several) == found


def test_noise_draws_from_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    noise = Noise(3, temperature=0.5)
    draws = torch.stack([noise(logits) for _ in range(4000)]).argmax(-1)
    expected = torch.softmax(logits / 0.5, -1)
    found = torch.bincount(draws, minlength=4) / 4000
    assert found.numpy() == pytest.approx(expected.numpy(), abs=0.025)


def test_samples_end_at_the_window(reader: Reader) -> None:
    prompt = Prompted(reader, prompt_of(WINDOW - 3))
    (text,) = prompt.sample([[]], max_new_tokens=50, temperature=0)
    assert text == greedily(reader, prompt_of(WINDOW - 3), 3)


# What does not fit.


def test_what_is_too_long_or_empty_is_refused(reader: Reader) -> None:
    with pytest.raises(InputError, match="no tokens"):
        Prompted(reader, [])
    with pytest.raises(InputError, match=f"a prompt of {WINDOW} tokens fills .* window of {WINDOW}"):
        Prompted(reader, prompt_of(WINDOW))
    prompt = Prompted(reader, prompt_of(WINDOW - 2))
    assert prompt.logits_after([[1, 2]]).shape == (1, reader.model.config.vocab_size)
    with pytest.raises(InputError, match="leaves no room"):
        prompt.logits_after([[1], [1, 2, 3]])
    with pytest.raises(InputError, match="leaves no room"):
        prompt.sample([[1, 2]], max_new_tokens=1)


def test_what_prompts_begin_with_is_read_once(reader: Reader) -> None:
    prompts = [[1, 2, 3, 4], [1, 2, 7], [1, 2]]
    prompt, rest = prompted_together(reader, prompts)
    assert rest == [[3, 4], [7], []]
    expected = torch.stack([plainly(reader.model, ids) for ids in prompts])
    torch.testing.assert_close(prompt.logits_after(rest), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="no beginning in common"):
        prompted_together(reader, [[1, 2], [2, 1]])

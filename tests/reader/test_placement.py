"""A reader whose layers do not fit into memory: loaded by `device="auto"`, it reads as the plain one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrp4rag.features.replay import PlainReplay
from lrp4rag.judge import analyse
from lrp4rag.reader import Reader, load_reader, placement
from lrp4rag.reader import reader as readers
from lrp4rag.reader.placement import AUTO, cache_in, cache_option, is_away, room_for_weights
from lrp4rag.util.errors import InputError
from tests.cli.plain_detector import plain_detector
from tests.reader.test_quantised_reader import config_of
from tests.tiny import bridge_example, save_tiny_reader

SMALL = 60_000
"""Bytes: half of the tiny reader, or less."""


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_reader(tmp_path_factory.mktemp("plain") / "reader", num_hidden_layers=5)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "room_for_weights", lambda _: {"cpu": SMALL})


@pytest.fixture(scope="module")
def plain(plain_folder: Path) -> Reader:
    return load_reader(str(plain_folder), device="cpu")


@pytest.fixture
def placed(plain_folder: Path, little: None) -> Reader:
    reader = load_reader(str(plain_folder), device=AUTO)
    assert any(is_away(module) for module in reader.model.modules())
    return reader


def test_it_is_the_same_reader(plain: Reader, placed: Reader) -> None:
    assert placed.identity == plain.identity
    analysis = analyse(bridge_example(), placed, plain_detector(plain))  # which accepts it
    expected = analyse(bridge_example(), plain, plain_detector(plain))
    assert analysis.probability == pytest.approx(expected.probability, abs=1e-6)


def test_it_reads_and_writes_as_the_plain_one(plain: Reader, placed: Reader) -> None:
    """Plain passes, branches, responses and relevance."""
    encoded = plain.encode(bridge_example())
    expected, actual = PlainReplay(plain)(encoded), PlainReplay(placed)(encoded)
    for name, values in expected.signals.items():
        np.testing.assert_allclose(actual.signals[name], values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(actual.state("around"), expected.state("around"), rtol=1e-2)
    example = bridge_example(response=None)
    assert placed.generate(example, max_new_tokens=6) == plain.generate(example, max_new_tokens=6)
    whole, parts = (analyse(bridge_example(), reader, None, rows=True) for reader in (plain, placed))
    for name in ("by_segment", "sentence_rows"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-3, atol=1e-5)


def test_a_reader_that_fits_is_not_split(plain_folder: Path) -> None:
    model = load_reader(str(plain_folder), device=AUTO).model
    assert not any(is_away(module) for module in model.modules())


def test_a_quantised_reader_that_does_not_fit_is_refused(little: None, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    wide = save_tiny_reader(
        tmp_path / "wide", hidden_size=64, intermediate_size=128, num_attention_heads=4, num_hidden_layers=5
    )
    model = AutoModelForCausalLM.from_pretrained(wide, quantization_config=config_of("torchao"))
    model.save_pretrained(tmp_path / "quantised")
    AutoTokenizer.from_pretrained(wide).save_pretrained(tmp_path / "quantised")
    with pytest.raises(InputError, match=r"does not fit.*quantised.*raise max_memory"):
        load_reader(str(tmp_path / "quantised"), device=AUTO)


def test_memory_bounds_what_weights_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement.torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(placement.torch.cuda, "mem_get_info", lambda k: ((10 + k) * 10**9, 0))
    room = room_for_weights(None)
    assert (room[0], room[1]) == (8 * 10**9, 8.8 * 10**9)
    room = room_for_weights(5 * 10**9)
    assert (room[0], room[1]) == (4 * 10**9, 4 * 10**9)
    monkeypatch.setattr(placement.torch.cuda, "device_count", lambda: 0)
    assert room_for_weights(1) == {"cpu": 0}  # the process takes more already
    assert room_for_weights(None)["cpu"] > SMALL


# The key/value cache goes by the name that a release of transformers has for it.


def new(ids: object, cache: Any = None, **more: object) -> None: ...


def former(ids: object, past_key_values: Any = None, **more: object) -> None: ...


@pytest.mark.parametrize(("takes", "name"), [(new, "cache"), (former, "past_key_values")])
def test_the_cache_goes_by_the_name_in_the_signature(takes: Any, name: str) -> None:
    assert cache_option(takes, "held") == {name: "held"}
    assert cache_in({name: "held", "use_cache": True}) == "held"
    assert cache_in({"use_cache": False}) is None

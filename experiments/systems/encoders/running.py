"""What running any encoder over many texts shares: chunks, batches of like lengths, fast precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.util.sentences import sentences_in

TOKENS_A_BATCH = 4096


def chunk_spans(text: str, words: int) -> list[tuple[int, int]]:
    """Characters of runs of whole sentences with at most `words` words, or of a single longer sentence."""
    found: list[tuple[int, int]] = []
    count = 0
    for start, end in sentences_in(text):
        own = len(text[start:end].split())
        if found and count + own <= words:
            found[-1] = (found[-1][0], end)
            count += own
        else:
            found.append((start, end))
            count = own
    return found


def chunks_of(texts: Iterable[str], words: int) -> list[str]:
    """The chunks of each text, one text after the other."""
    return [text[start:end] for text in texts for start, end in chunk_spans(text, words)]


def batches(lengths: Sequence[int], tokens: int = TOKENS_A_BATCH) -> Iterator[NDArray[np.intp]]:
    """Numbers of texts, shortest first, so that a padded batch has at most so many tokens, or one text."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens:
            yield order[start:end]
            start = end


def outputs(
    run: Callable[..., Any], encoded: Mapping[str, Sequence[Any]], tokenizer: Any, device: Any
) -> Iterator[tuple[NDArray[np.intp], Any, Any]]:
    """Run a model, without gradients, over what its tokenizer made of many texts: for each batch the numbers
    of its texts, the padded tensors, and what `run` returns for these."""
    import torch

    for chosen in batches([len(ids) for ids in encoded["input_ids"]]):
        part = {name: [values[k] for k in chosen] for name, values in encoded.items()}
        batch = tokenizer.pad(part, return_tensors="pt").to(device)
        with torch.no_grad(), autocast(str(device)):
            found = run(**batch)
        yield chosen, batch, found


def tokens_read(config: Any, tokenizer: Any, most: int) -> int:
    """How many tokens a model is given at once: at most `most`, and what positions and tokenizer allow."""
    return int(min(getattr(config, "max_position_embeddings", most), tokenizer.model_max_length, most))


def encoded_pair(tokenizer: Any, first: str, second: str, longest: int, **options: Any) -> Any:
    """Two texts as one input of at most `longest` tokens. The first is cut off; so is the second where it
    leaves no room for the first."""
    room = longest - tokenizer.num_special_tokens_to_add(pair=True)
    fits = len(tokenizer(second, add_special_tokens=False, verbose=False)["input_ids"]) < room
    return tokenizer(
        first, second, truncation="only_first" if fits else "longest_first", max_length=longest, **options
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch draws from this seed inside, and goes on as before after it."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def autocast(device: str | None = None) -> AbstractContextManager[Any]:
    """bfloat16 where this device is faster in it."""
    import torch

    from lrp4rag.reader.reader import check_device, fastest_dtype

    found = check_device(device)
    fast = fastest_dtype(found) == "bfloat16"
    return torch.autocast(found.split(":")[0], dtype=torch.bfloat16, enabled=fast)

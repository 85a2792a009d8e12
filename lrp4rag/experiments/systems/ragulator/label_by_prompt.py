"""Labels by asking: a model is told to name the sentences of the context that support a sentence.

The paper labels windows of its contexts so, with a model of 70B parameters (arXiv 2411.03920).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.example import Example
from lrp4rag.experiments.systems.judge import RETRY_TEMPERATURE, TRIES, asked_until_read
from lrp4rag.sentences import sentences_of

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.chat import Chat
    from lrp4rag.experiments.systems.kit import Kit

CASE = "Numbered sentences:\n{context}\n\nStatement: {sentence}\n\n"
"""The context comes first: what the questions about one source share is read once."""
QUESTION = (
    "Which of the numbered sentences support the statement? Reply with nothing but their numbers, separated "
    'by commas, or with the word "none" if there is none. For example: 2, 5'
)
REPLY_TOKENS = 24
NONE = "none"
_NUMBERS = re.compile(r"\d+(\s*,\s*\d+)*")


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Of S sentences: `out` is 1 where no sentence of the context supports it, 0 where one does, and NaN
    where no reply could be used."""

    out: NDArray[np.float64]


def prompted_labels(examples: Sequence[Example], kit: Kit) -> list[NDArray[np.float64]]:
    """What `Asked.out` says of each response's sentences."""
    chat = kit.chat
    settings = {
        "chat": chat.name,
        "prompts": [CASE, QUESTION],
        "tries": f"{TRIES}, {REPLY_TOKENS}, {RETRY_TEMPERATURE}",
    }
    found = kit.measured("ragulator-labels", settings, examples, Asked, lambda group: ask(group, chat))
    return [one.out for one in found]


def ask(group: Sequence[Example], chat: Chat) -> list[Asked]:
    """About responses to one source, all their sentences together."""
    context = [sentence for text in group[0].passages for sentence in sentences_of(text)]
    numbered = "\n".join(f"{k}. {sentence}" for k, sentence in enumerate(context, start=1))
    texts = [sentences_of(example.response) for example in group]
    messages = [CASE.format(context=numbered, sentence=text) + QUESTION for own in texts for text in own]
    found = asked_until_read(
        messages, chat, partial(read_indices, count=len(context)), max_tokens=REPLY_TOKENS
    )
    out = np.array([np.nan if one is None else float(not one) for one in found])
    return [Asked(part) for part in np.split(out, np.cumsum([len(own) for own in texts])[:-1])]


def read_indices(reply: str, count: int) -> tuple[int, ...] | None:
    """The numbers, each from 1 to `count`; () for "none". None where the reply is anything else."""
    text = reply.strip().removesuffix(".").lower()
    if text == NONE:
        return ()
    if not _NUMBERS.fullmatch(text):
        return None
    numbers = tuple(int(one) for one in text.split(","))
    return numbers if all(1 <= number <= count for number in numbers) else None

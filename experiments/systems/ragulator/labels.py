"""What a classifier of sentences learns from: simulated sentences out of context, annotated spans, or what a
model replies (arXiv 2411.03920).

Simulated ones need no labels: a sentence is read beside another source's passages. Sources are taken in
couples that lend each other their passages. Whatever is learned from a couple knows both of its sources and
no other, so folds that split no couple leak nothing. Replies name the sentences of the context that support a
sentence; the paper labels windows of its contexts so, with a model of 70B parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.systems.chat import Chat
from experiments.systems.encoders.entailment import Entailment
from experiments.systems.judge import RETRY_TEMPERATURE, TRIES, asked_until_read
from experiments.systems.ragulator.features import Features, context_sentences, features_of
from experiments.systems.resources import Resources
from experiments.systems.scoring import split
from lrp4rag.example import Example
from lrp4rag.training.metrics import annotated_sentences
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_of

SENTENCES = 4  # drawn of each response for a simulated one, at most
BREAK = "\n\n"  # between them
CASE = "Numbered sentences:\n{context}\n\nStatement: {sentence}\n\n"
"""The context comes first: what the questions about one source share is read once."""
QUESTION = (
    "Which of the numbered sentences support the statement? Reply with nothing but their numbers, separated "
    'by commas, or with the word "none" if there is none. For example: 2, 5'
)
REPLY_TOKENS = 24
NONE = "none"
_NUMBERS = re.compile(r"\d+(\s*,\s*\d+)*")
Source = Literal["simulated", "annotated", "prompted"]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledSentences:
    """P sentences beside contexts: `inputs` (P, 5), `labels` (P,), True for out of context, and `groups` (P,)
    that no fold splits. `group_of` (R,) are the groups of the responses that they were made of."""

    inputs: NDArray[np.float64]
    labels: NDArray[np.bool_]
    groups: NDArray[np.str_]
    group_of: NDArray[np.str_]


def from_simulated(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, resources: Resources
) -> LabelledSentences:
    """Sentences beside their own context count as in context, be they annotated or not: labels are not
    looked at. Beside another's they are out of it."""
    pairs = simulated(examples, resources.seed)
    far = features_of([pair.elsewhere for pair in pairs], model, resources)
    inputs = [one.numbers[pair.own] for one, pair in zip(features, pairs, strict=True)]
    couples = np.array([pair.couple for pair in pairs])
    return LabelledSentences(
        np.concatenate([*inputs, *(one.numbers for one in far)]),
        np.repeat([False, True], [sum(map(len, inputs)), sum(len(one.numbers) for one in far)]),
        np.repeat(np.tile(couples, 2), [*map(len, inputs), *(len(one.numbers) for one in far)]),
        couples,
    )


def from_spans(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, resources: Resources
) -> LabelledSentences:
    """A sentence that shares a character with an annotated span is out of context."""
    return _labelled(examples, features, [annotated_sentences(example).astype(float) for example in examples])


def from_replies(
    examples: Sequence[Example], features: Sequence[Features], model: Entailment, resources: Resources
) -> LabelledSentences:
    """By what a model replied; sentences without a usable reply are left out."""
    return _labelled(examples, features, prompted_labels(examples, resources))


SOURCES = {"simulated": from_simulated, "annotated": from_spans, "prompted": from_replies}


def _labelled(
    examples: Sequence[Example], features: Sequence[Features], out: Sequence[NDArray[np.float64]]
) -> LabelledSentences:
    sources = np.array([example.source for example in examples])
    flags = np.concatenate(out)
    known = np.isfinite(flags)
    return LabelledSentences(
        np.concatenate([one.numbers for one in features])[known],
        flags[known] == 1,
        np.repeat(sources, [len(one) for one in out])[known],
        sources,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Sentences of a response: their numbers `own` (at most `SENTENCES`), and `elsewhere`, a response that
    has these sentences and no others, to the question of another source of its `couple`."""

    couple: str
    own: NDArray[np.intp]
    elsewhere: Example


def simulated(examples: Sequence[Example], seed: int) -> list[Simulated]:
    """One of each response. Raises `InputError` unless there are two sources."""
    context = {example.source: example for example in examples}
    couple_of = {source: couple for couple in couples(context, seed) for source in couple}
    generator = np.random.default_rng(seed)
    made = []
    for example in examples:
        couple = couple_of[example.source]
        lender = couple[(couple.index(example.source) + 1) % len(couple)]
        texts = sentences_of(example.response)
        # A line of code is one sentence, and may be two by itself.
        alone = [k for k, text in enumerate(texts) if sentences_of(text) == [text]]
        own = np.sort(generator.permutation(np.array(alone, dtype=np.intp))[:SENTENCES])
        while sentences_of(joined := BREAK.join(texts[k] for k in own)) != [texts[k] for k in own]:
            own = own[:-1]
        if not len(own):  # none can stand by itself: the first one, in its pieces
            own, joined = np.zeros(1, dtype=np.intp), texts[0]
        elsewhere = context[lender].with_response(joined)
        made.append(Simulated(" and ".join(couple), own, elsewhere))
    return made


def couples(sources: Iterable[str], seed: int) -> list[tuple[str, ...]]:
    """Distinct sources drawn two by two; three of them go together where their number is odd.

    Raises `InputError` unless there are two.
    """
    order = np.random.default_rng(seed).permutation(sorted(sources))
    if len(order) < 2:
        raise InputError("sentences out of context need the passages of another source, and there is none")
    return [tuple(part.tolist()) for part in np.array_split(order, len(order) // 2)]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Of S sentences: `out` is 1 where no sentence of the context supports it, 0 where one does, and NaN
    where no reply could be used."""

    out: NDArray[np.float64]


def prompted_labels(examples: Sequence[Example], resources: Resources) -> list[NDArray[np.float64]]:
    """What `Asked.out` says of each response's sentences."""
    chat = resources.chat
    settings = {
        "chat": chat.name,
        "prompts": [CASE, QUESTION],
        "tries": f"{TRIES}, {REPLY_TOKENS}, {RETRY_TEMPERATURE}",
    }
    found = resources.measured("ragulator-labels", settings, examples, Asked, lambda group: ask(group, chat))
    return [one.out for one in found]


def ask(group: Sequence[Example], chat: Chat) -> list[Asked]:
    """About responses to one source, all their sentences together."""
    context = context_sentences(group[0])
    numbered = "\n".join(f"{k}. {sentence}" for k, sentence in enumerate(context, start=1))
    texts = [sentences_of(example.response) for example in group]
    messages = [CASE.format(context=numbered, sentence=text) + QUESTION for own in texts for text in own]
    found = asked_until_read(messages, chat, partial(read_indices, count=len(context)), REPLY_TOKENS)
    out = np.array([np.nan if one is None else float(not one) for one in found])
    return [Asked(part) for part in split(out, texts)]


def read_indices(reply: str, count: int) -> tuple[int, ...] | None:
    """The numbers, each from 1 to `count`; () for "none". None where the reply is anything else."""
    text = reply.strip().removesuffix(".").lower()
    if text == NONE:
        return ()
    if not _NUMBERS.fullmatch(text):
        return None
    numbers = tuple(int(one) for one in text.split(","))
    return numbers if all(1 <= number <= count for number in numbers) else None

"""What a comparer makes of each sentence of a response, beside what the passages say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lrp4rag.claims.answer import Passages, Span
from lrp4rag.claims.premise import points_back, premise_of
from lrp4rag.example import Example
from lrp4rag.features.feature import Feature
from lrp4rag.reader.comparer import Entailment, Pair
from lrp4rag.util.sentences import sentences_in

FEATURES = (
    Feature("doubt of the word", "any", "log odds, by the comparer, that the token's word is wrong", "nat"),
    Feature("doubt of the sentence", "any", "log odds, by the comparer, that it is not supported", "nat"),
    Feature("contradicted", "any", "its log-probability of a contradiction, less that of support", "nat"),
)
"""Of tokens; 0 outside of sentences."""
OF_ALARMS = "entailment: "
"""What the names of features of values and sentences begin with."""


def pairs_of(passages: Passages, response: str, sentences: Sequence[Span], first: int = 0) -> list[Pair]:
    """Return what a comparer reads of each sentence from number `first` on: its premise, the question, the
    sentence before where it points back to that, and itself."""
    pairs, last = [], response[slice(*sentences[first - 1])] if first else ""
    for start, end in sentences[first:]:
        claim = response[start:end]
        before = last if points_back(claim) else ""
        lead = f"{passages.question} {before}".strip()
        pairs.append(Pair(premise_of(passages, claim, before), lead, claim))
        last = claim
    return pairs


def pairs_of_each(examples: Iterable[Example]) -> Iterator[tuple[Example, tuple[Span, ...], list[Pair]]]:
    """Yield each response's example, its sentences and their pairs; a prompt is read once for responses that
    follow each other."""
    passages, key = Passages("", ()), None
    for example in examples:
        if key != (example.question, example.passages):
            key = example.question, example.passages
            passages = Passages(example.question, example.passages)
        response = example.response or ""
        sentences = sentences_in(response)
        yield example, sentences, pairs_of(passages, response, sentences)


def entailment_features(entailment: Entailment, start: int, end: int) -> dict[str, float]:
    """Return the features of characters `start` to `end` of a sentence, log odds by name."""
    return {
        f"{OF_ALARMS}unsupported": entailment.unsupported,
        f"{OF_ALARMS}contradicted": entailment.contradicted,
        f"{OF_ALARMS}highest word": entailment.highest(),
        f"{OF_ALARMS}highest word here": entailment.highest(start, end),
    }

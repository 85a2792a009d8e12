"""A model for natural language inference finds contradictions that no value tells."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from lrp4rag.claims.statements import Statement
from lrp4rag.util.errors import InputError

Scorer = Callable[[str, str], float]
"""The probability that the second sentence contradicts the first."""

CERTAIN = 0.9
MOST = 64
"""Pairs that are scored: each takes two passes of the model."""


def contradicting(
    model: str, pairs: Sequence[tuple[Statement, Statement]], tick: Callable[[], None]
) -> Iterator[tuple[Statement, Statement]]:
    """Yield the first `MOST` pairs' that contradict each other in both directions. Raises `InputError` where
    the model cannot be loaded."""
    score = scorer(model)
    for one, other in pairs[:MOST]:
        tick()
        if score(one.text, other.text) >= CERTAIN and score(other.text, one.text) >= CERTAIN:
            yield one, other


@functools.cache
def scorer(model: str) -> Scorer:
    """That of a sequence classifier with a label "contradiction", by hub id or folder. No remote code is run,
    and pickled weights are not loaded. Raises `InputError` where it cannot be loaded."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from lrp4rag.reader.lock import lock_of
    from lrp4rag.reader.weights import pretrained, reason

    try:
        tokenizer = pretrained(AutoTokenizer, model)
        kind = AutoModelForSequenceClassification
        classifier, found = pretrained(kind, model, use_safetensors=True, output_loading_info=True)
    except Exception as error:  # transformers raises many kinds for folders that it cannot read
        raise InputError(f"no model for entailment: {reason(error)}") from error
    if missing := sorted(found["missing_keys"]):  # transformers makes them up at random
        raise InputError(
            f"no model for entailment: its files lack {len(missing)} weights, such as {missing[0]}"
        )
    classifier.eval()
    labels = {str(name).lower(): int(number) for number, name in classifier.config.id2label.items()}
    if "contradiction" not in labels:
        raise InputError(f"the model for entailment has no label 'contradiction', but {', '.join(labels)}")

    @torch.no_grad()
    def score(one: str, other: str) -> float:
        with lock_of(tokenizer):
            encoded = tokenizer(one, other, return_tensors="pt", truncation=True, max_length=256)
        return float(classifier(**encoded).logits[0].softmax(-1)[labels["contradiction"]])

    return score

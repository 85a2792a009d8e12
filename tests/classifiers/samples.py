"""Relevance made by hand: hallucinated responses have lower values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lrp4rag.classifiers.card import Card, ModelInput, package_versions
from lrp4rag.classifiers.folder import FORMAT
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.classifiers.verdict import Assessment, Evidence, Judgement, Verdict
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.encoding import Encoded

READER = {
    **{"name": "tiny", "weights": "w", "config": "c", "tokenizer": "k", "template": "t"},
    **{"digest": "0123", "chat_template": True, "dtype": "float32"},
}


def card_of(reader: dict[str, Any], given: ModelInput, *, threshold: float = 0.5, **more: Any) -> Card:
    """Of a detector made by hand, which learned from nothing."""
    return Card(
        format=FORMAT,
        settings="",
        reader=reader,
        composite="attnlrp",
        target="response",
        input=given,
        feature_version=FEATURE_VERSION,
        threshold=threshold,
        rows=0,
        hallucinated=0,
        versions=package_versions(),
        **more,
    )


def judge(
    encoded: Encoded,
    relevance: Relevance | None = None,
    *,
    threshold: float | None = None,
    unlike: Any = (),
    **assessment: Any,
) -> Verdict:
    """The verdict of an assessment, without evidence."""
    judgement = Judgement.of(encoded, Assessment(**assessment), threshold, relevance=relevance, unlike=unlike)
    return judgement.verdict(Evidence(), Verdict)


def relevance_of(total, *, reader=None, composite="attnlrp", text=None, by_segment=None) -> Relevance:
    """Relevance whose sum over the 4 prompt tokens is given; response tokens are the words of `text`."""
    values = np.asarray(total, dtype=np.float32)
    text = text or " ".join(f"w{k}" for k in range(len(values)))
    offsets, start = [], 0
    for word in text.split(" "):
        offsets.append((start, start + len(word)))
        start += len(word) + 1
    assert len(offsets) == len(values)
    encoded = Encoded(
        prompt_ids=(1, 2, 3, 4),
        response_ids=tuple(range(len(values))),
        text="a b c d",
        response=text,
        prompt_offsets=((0, 1), (2, 3), (4, 5), (6, 7)),
        response_offsets=tuple(offsets),
        segments=(0, 1, 2, 3),
        segment_names=("template", "question", "passage 1", "passage 2"),
    )
    return Relevance(encoded, composite, "response", reader or READER, values, values / 4, by_segment)


def labelled_rows(count: int = 60, seed: int = 0):
    """Relevance, labels and token flags; the last third of each hallucinated response is so."""
    generator = np.random.default_rng(seed)
    rows, labels, flags = [], [], []
    for k in range(count):
        length = int(generator.integers(12, 60))
        values = generator.normal(1.0, 0.2, length)
        flag = np.zeros(length, dtype=bool)
        if k % 2:
            flag[-length // 3 :] = True
            values[flag] -= 1.0
        rows.append(relevance_of(values))
        labels.append(bool(k % 2))
        flags.append(flag)
    return rows, np.array(labels), flags

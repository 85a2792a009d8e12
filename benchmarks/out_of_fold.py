"""`judged`: the answers of a store, each judged by a detector that did not learn from its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lrp4rag.classifiers.operating import FEW_ALARMS
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.example import Example
from lrp4rag.features.blocks import PLAIN_BLOCKS, blocks_named
from lrp4rag.training.folds import ONCE
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.progress import track

PROTOCOL = ONCE.words


def judged(store: str | Path, sources: int | None = None) -> Iterator[tuple[Example, Verdict]]:
    """Folds are grouped by source; of the first `sources` only, where that is given. The store needs the part
    `reading`."""
    rows, blocks = Rows.open(store).select_sources(sources), blocks_named(PLAIN_BLOCKS)
    tokens = tokens_of(rows, blocks)
    folds = folds_of(tokens, ONCE)
    for split in track(folds, len(folds), "learning"):
        detector = fit_detector(rows.select(split.train), tokens.take(split.train), blocks, point=FEW_ALARMS)
        kept = rows.select(split.test)
        for example, record in zip(kept.examples, kept.readings(), strict=True):
            yield example, detector.predict(record)

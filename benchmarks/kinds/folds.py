"""Questions of the set everyday as the whole detector judges them: each by one that did not learn from it.

Cross-validation in training scores what a store has. A verdict is more than that: it reads counter-claims,
and judges again without what is said of something else. So detectors are fitted like the bundled one, each
without a fifth of the sources, and judge the answers to those questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.answers import of_some_questions
from benchmarks.kinds.judging import (
    EVERYDAY,
    FAITHFUL,
    HELD,
    HELD_EDITS,
    ORIGINAL,
    Case,
    edited_cases,
    has_value_of,
    judge_cases,
)
from lrp4rag.classifiers.operating import FEW_ALARMS
from lrp4rag.classifiers.verdict import Contradiction
from lrp4rag.cli.train import BUNDLED_MORE_EVERY, BUNDLED_PAIRS_EVERY
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.features.blocks import PLAIN_BLOCKS, Block, blocks_named
from lrp4rag.judge import Detector
from lrp4rag.reader.comparer import Comparer
from lrp4rag.training.comparing import entailments_of
from lrp4rag.training.corpus import ANNOTATED, Corpus
from lrp4rag.training.folds import ONCE, Split
from lrp4rag.training.rows import Rows
from lrp4rag.training.sets import EVIDENCE as EDITS
from lrp4rag.training.sets import load_set, right_answers
from lrp4rag.training.store import Store
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.train import CACHE, TokenRecipe
from lrp4rag.util.files import write_atomically
from lrp4rag.util.progress import track

SOURCES = "sources.json"
"""In the folder of a fold's detector: the sources that it did not learn from."""


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What the bundled detector learns from: the stored `rows` of a `corpus`, and their `tokens`."""

    corpus: Corpus
    rows: Rows
    tokens: Tokens
    blocks: Mapping[str, Block]

    @classmethod
    def of(cls, folder: Path, ragtruth: Path, jobs: int) -> Learned:
        """Read it from the store that its training left."""
        corpus = Corpus.of(
            load_examples(ragtruth),
            {EVERYDAY: load_set(EVERYDAY)},
            more_every=BUNDLED_MORE_EVERY,
            pairs=True,
            pairs_every=BUNDLED_PAIRS_EVERY,
        )
        store = Store.existing(folder)
        corpus = corpus.without(store.failures())
        entailments = entailments_of(corpus.examples, folder / CACHE, jobs)
        rows = Rows(store, corpus.examples, entailments=entailments)
        blocks = blocks_named(PLAIN_BLOCKS)
        return cls(corpus, rows, TokenRecipe(blocks).tokens(rows, corpus, folder / CACHE), blocks)

    def fit(self, split: Split, folder: Path) -> None:
        """Fit the detector of one fold, in one thread."""
        with threadpool_limits(1):
            detector = fit_detector(
                self.rows.select(split.train),
                self.tokens.take(split.train),
                self.blocks,
                point=FEW_ALARMS,
                annotated=np.flatnonzero(self.corpus.names[split.train] == ANNOTATED),
            )
        detector.save(folder)
        sources = sorted(set(self.tokens.groups[split.test].tolist()))
        write_atomically(folder / SOURCES, json.dumps(sources, indent=0) + "\n")


def fit_folds(learned: Learned, out: Path, jobs: int) -> None:
    """Fit the detectors of all folds, those that are not in `out` yet."""
    folds = enumerate(folds_of(learned.tokens, ONCE))
    missing = [(number, split) for number, split in folds if not _is_fitted(out, number)]
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", max_nbytes=None)
    tasks = (delayed(learned.fit)(split, out / str(number)) for number, split in missing)
    for _ in track(pool(tasks), len(missing), "fitting detectors"):
        pass


def are_fitted(out: Path) -> bool:
    """Say whether the detectors of all folds are there; what they learn from takes minutes to read."""
    return all(_is_fitted(out, number) for number in range(ONCE.folds))


def _is_fitted(out: Path, number: int) -> bool:
    return (out / str(number) / SOURCES).exists()


def judge_folds(detectors: Path, raw: Path, dtype: str, every: int, edits_every: int) -> None:
    """Judge the answers to one in `every` questions, and one answer to each edit of the passages of one in
    `edits_every`, by the detector that did not learn from them."""
    cases = {HELD: answers_of_everyday(every), HELD_EDITS: edits_of_everyday(edits_every)}
    for path in sorted(detectors.glob(f"*/{SOURCES}")):
        sources = set(json.loads(path.read_text()))
        detector = Detector.load(path.parent, dtype=dtype, truncation="passages")
        for name, some in cases.items():
            own = [case for case in some if case.example.source in sources]
            judge_cases(detector, name, own, raw / f"{name}.jsonl", asking_others)


@contextmanager
def asking_others(source: str) -> Iterator[None]:
    """Have the comparer read by the networks that did not learn from a source, as in training."""
    networks_for = Comparer._networks_for
    with patch.object(
        Comparer, "_networks_for", lambda comparer, given: networks_for(comparer, given or source)
    ):
        yield


def answers_of_everyday(every: int) -> list[Case]:
    """Return the answers that the bundled detector learns from, to one question in `every`."""
    learned = Corpus.of([], {EVERYDAY: load_set(EVERYDAY)}, more_every=BUNDLED_MORE_EVERY).examples
    right = {one.id: one for one in learned if not one.labels}
    return [_case(one, right) for one in of_some_questions(learned, every)]


def _case(example: Example, right: Mapping[str, Example]) -> Case:
    if not example.labels:
        return Case(example, FAITHFUL, None, lambda _: False)
    twin = right.get(example.id.partition("~")[0])

    def is_right(value: Contradiction) -> bool:
        return twin is not None and has_value_of(twin.response or "", example.response or "", value)

    return Case(example, str(example.labels[0].kind), None if twin is None else twin.id, is_right)


def edits_of_everyday(every: int) -> list[Case]:
    """Return the right answers to one question in `every`, and one answer to each edit of its passages: the
    first that is wrong then, or the first of all."""
    cases = list[Case]()
    chosen = dict(list(right_answers().items())[::every])
    for _, group in groupby(edited_cases(EDITS, chosen), lambda case: tuple(case.example.passages)):
        some = list(group)
        wrong = (case for case in some if case.example.labels)
        cases += some if some[0].kind == ORIGINAL else [next(wrong, some[0])]
    return cases

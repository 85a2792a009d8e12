"""Learn the bundled detector's rule anew: what makes claims, and a verdict, of its networks' scores.

    python -m benchmarks.rule RAGTRUTH --store STORE --out FOLDER

The networks stay as they are. Each was fitted without one fold of the sources, and scores the rows of that
fold here: so the rule learns from scores by networks that did not see a row's source, and so it is judged, by
folds of the same sources. Of RAGTruth's train split and of the everyday questions, the first sources in an
order that is drawn by their names: all rows that the networks learned from would take hours more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import click
import numpy as np
import torch
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.card import Range
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.ensemble import Ensemble, Network
from lrp4rag.classifiers.operating import FEW_ALARMS, by_set, operating_points
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.cli.inputs import load_data
from lrp4rag.example import Example
from lrp4rag.features.parts import READING
from lrp4rag.reader.reader import Reader, load_reader
from lrp4rag.training.corpus import ANNOTATED, Corpus
from lrp4rag.training.extract import extract
from lrp4rag.training.folds import ONCE, Split, groups_of, labels_of
from lrp4rag.training.localisation import CLASSIFIER
from lrp4rag.training.rows import Rows
from lrp4rag.training.sets import set_path
from lrp4rag.training.token_detector import detector_of
from lrp4rag.training.token_folds import FOLDS, BlockScores, decide_fold, fit_stacker, joined
from lrp4rag.training.tokens import Tokens, tokens_of
from lrp4rag.training.train import UNKNOWN, data_hash, evidence_of

MORE_EVERY, PAIRS_EVERY = 2, 12
"""Of the corpus that the bundled networks learned from: see the command in their card."""
SOURCE = (
    "out-of-fold probabilities of the rows below, each by networks that did not learn from its source and a "
    "rule learned from the other folds"
)


def first_sources(examples: Sequence[Example], count: int) -> list[Example]:
    """The rows of so many sources, in an order that is drawn by their names."""
    names = sorted({one.source for one in examples}, key=lambda name: crc32(name.encode()))
    chosen = set(names[:count])
    return [one for one in examples if one.source in chosen]


def folds_by_source(corpus: Corpus) -> dict[str, int]:
    """The fold of each source of the corpus that the networks learned from: the one that was held out."""
    labels, groups = labels_of(corpus.examples), groups_of(corpus.examples)
    found: dict[str, int] = {}
    for fold, (_, held) in enumerate(grouped_folds(labels, groups, FOLDS, 0)):
        found |= dict.fromkeys(groups[held].tolist(), fold)
    return found


def scores_outside(
    ensemble: Ensemble, tokens: Tokens, folds: NDArray[np.intp]
) -> dict[str, NDArray[np.float64]]:
    """By block, the log odds (N,) of each token by the network that did not learn from its source; `folds`
    (R,) are those of the rows."""
    of_token = folds[tokens.owner]
    found = {name: np.zeros(len(tokens.owner)) for name in ensemble.networks}
    for name, networks in ensemble.networks.items():
        for fold, network in enumerate(networks):
            inside = np.flatnonzero(of_token == fold)
            found[name][inside] = network.log_odds(tokens.blocks[name][inside])
    return found


def learned(
    former: FittedDetector, rows: Rows, corpus: Corpus, folds: NDArray[np.intp], resamples: int
) -> FittedDetector:
    """The former detector's networks with a rule learned from the rows, and its card."""
    model = former.model
    if not isinstance(model, TokenModel):
        raise click.ClickException("this detector has no networks")
    tokens = tokens_of(rows, model.blocks)
    sets = np.array([row.set for row in corpus.rows], dtype=np.str_)
    tokens = replace(tokens, sets=sets)
    outside = scores_outside(model.ensemble, tokens, folds)
    nobody = np.full(len(tokens.labels), "")
    results = {}
    for name, told in ((CLASSIFIER, tokens), (UNKNOWN, replace(tokens, generators=nobody))):
        parts = []
        for fold in range(FOLDS):
            split = Split(0, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
            scores = {
                block: BlockScores(each[told.within(split.train)], each[told.within(split.test)])
                for block, each in outside.items()
            }
            parts.append(decide_fold(told, split, scores, FEW_ALARMS))
        results[name] = joined(parts, told)
    fitted = fit_stacker(tokens, np.arange(len(rows)), outside)
    made = detector_of(
        Ensemble(model.ensemble.networks, fitted.stacker),
        fitted,
        rows,
        tokens,
        model.blocks,
        results[CLASSIFIER].outcome.probabilities[0],
        FEW_ALARMS,
        corpus.numbers(ANNOTATED),
        SOURCE,
    )
    evidence = evidence_of(made, rows, tokens.select(()), results, ONCE, corpus, resamples, 2)
    domain = {name: _both(one, former.card.domain.get(name, one)) for name, one in made.card.domain.items()}
    known = {
        "rows": former.card.rows,
        "hallucinated": former.card.hallucinated,
    }  # what the networks learned from
    return replace(made, card=made.card.model_copy(update={"evidence": evidence, "domain": domain, **known}))


def _both(one: Range, other: Range) -> Range:
    """What either holds: the networks learned from more rows than the rule."""
    return Range(low=min(one.low, other.low), high=max(one.high, other.high))


def chosen_corpus(ragtruth: Path, sources: tuple[int, int]) -> tuple[Corpus, dict[str, int]]:
    """The rows that the rule learns from: of so many sources of RAGTruth and of the everyday questions; and
    the fold of each source."""
    annotated, everyday = load_data(str(ragtruth), ()), load_data(str(set_path(Path("everyday"))), ())
    whole = Corpus.of(
        annotated, {"everyday": everyday}, more_every=MORE_EVERY, pairs=True, pairs_every=PAIRS_EVERY
    )
    few = {"everyday": first_sources(everyday, sources[1])}
    return Corpus.of(first_sources(annotated, sources[0]), few), folds_by_source(whole)


def held_out(
    detector: FittedDetector, rows: Rows, corpus: Corpus, folds: NDArray[np.intp]
) -> Iterator[tuple[int, Verdict]]:
    """The number of each row and the verdict on it, by the networks that did not learn from its source, and a
    rule and a threshold learned from the other folds."""
    model = detector.model
    assert isinstance(model, TokenModel)
    tokens = replace(
        tokens_of(rows, model.blocks), sets=np.array([row.set for row in corpus.rows], dtype=np.str_)
    )
    outside = scores_outside(model.ensemble, tokens, folds)
    records = dict(zip(range(len(rows)), rows.readings(), strict=True))
    for fold in range(FOLDS):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        inside = tokens.within(train)
        fitted = fit_stacker(tokens, train, {name: one[inside] for name, one in outside.items()})
        shown = by_set(tokens.labels[train], fitted.probabilities, tokens.sets[train])
        threshold = operating_points(*shown)[FEW_ALARMS].threshold
        networks: dict[str, tuple[Network, ...]] = {
            name: (some[fold],) for name, some in model.ensemble.networks.items()
        }
        judge = FittedDetector(
            replace(model, ensemble=Ensemble(networks, fitted.stacker), rule=fitted.rule),
            detector.card.model_copy(update={"threshold": threshold}),
        )
        for row in test.tolist():
            yield row, judge.predict(records[row], reasons=False)


@click.command()
@click.argument("ragtruth", type=click.Path(exists=True, path_type=Path))
@click.option("--store", required=True, type=click.Path(path_type=Path), help="What is read of the rows.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder of the detector.")
@click.option("--networks", default="default", help="The detector whose networks these are.")
@click.option("--sources", default=(300, 200), nargs=2, type=int, help="Of RAGTruth, of everyday questions.")
@click.option("--bootstrap", default=1000, help="Draws of an interval.")
def main(
    ragtruth: Path, store: Path, out: Path, networks: str, sources: tuple[int, int], bootstrap: int
) -> None:
    """Learn the bundled detector's rule anew, and measure it."""
    former = FittedDetector.load(networks)
    chosen, by_source = chosen_corpus(ragtruth, sources)

    def load(_: int) -> Reader:
        torch.set_num_threads(1)
        known = former.card.reader
        return load_reader(known["name"], dtype=known["dtype"], chat_template=known["chat_template"])

    extraction = extract(chosen.examples, load(0), store, parts=(READING,), workers=2, load=load)
    corpus = chosen.without(extraction.failures)
    rows = Rows(extraction.store, corpus.examples)
    folds = np.array([by_source[one.source] for one in corpus.examples])
    made = learned(former, rows, corpus, folds, bootstrap)
    command = f"python -m benchmarks.rule ragtruth_qa --sources {sources[0]} {sources[1]}"
    training = former.card.training and former.card.training.model_copy(
        update={"command": f"{former.card.training.command}; then {command}"}
    )
    card = made.card.model_copy(update={"training": training})
    replace(made, card=card).save(out)
    print(json.dumps({"rows": len(rows), "threshold": card.threshold, "hash": data_hash(corpus.examples)}))


if __name__ == "__main__":
    main()

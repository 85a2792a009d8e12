"""Features of whole responses by group: what is one number of a token is pooled in the same ways in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from experiments.tokens.blocks import LIKELIHOOD, RELEVANCE_ALONE
from experiments.tokens.candidates import lexical_features
from experiments.tokens.extraction import records
from experiments.tokens.response import POOLINGS, pooled
from experiments.tokens.states import nearest
from experiments.tokens.table import FEATURES
from experiments.tokens.text import TEXT_FEATURES
from lrp4rag.features.record import Record
from lrp4rag.training.rows import Rows
from lrp4rag.util.progress import track

Table = NDArray[np.float64]

POOLED: Mapping[str, tuple[str, ...]] = {
    "text": tuple(TEXT_FEATURES),
    "likelihood": LIKELIHOOD,
    "logit": ("logit",),
    "gain": ("gain",),
    "attention": ("mean lookback",),
    "relevance": RELEVANCE_ALONE,
}
"""Token features, which are pooled in every way of `features.response.POOLINGS`."""
MEANS, ANOTHERS = "relevance means", "another's"
SEED = 0


def groups(rows: Rows) -> dict[str, Table]:
    """(R, columns) by group. `text` has the six lexical features too, `attention` each head's mean lookback
    ratio, and `state` is the mean hidden state of one layer: these have hundreds of columns and are not
    pooled in other ways. `relevance means` are the means of `relevance` alone, and `another's` is
    `relevance` of another response of the same generator: as many columns that know nothing else of this.

    Raises `InputError` where the store has no signals.
    """
    found: dict[str, list[list[float]]] = {name: [] for name in (*POOLED, "state")}
    for record in track(records(rows), len(rows), "pooling features"):
        for name, features in POOLED.items():
            pools = (pooled(FEATURES[feature](record), record) for feature in features)
            found[name].append([value for pool in pools for value in pool.values()])
        found["attention"][-1] += record["lookback"].mean(-1).ravel().tolist()
        found["state"].append(mean_state(record).tolist())
    tables = {name: np.array(lines) for name, lines in found.items()}
    lexical = np.array([lexical_features(example) for example in rows.examples])
    tables["text"] = np.concatenate([tables["text"], lexical], axis=1)
    means = [name for _ in POOLED["relevance"] for name in POOLINGS]
    tables[MEANS] = tables["relevance"][:, np.array(means) == "mean"]
    tables[ANOTHERS] = tables["relevance"][within(rows.by_generator.values(), len(rows))]
    return tables


def mean_state(record: Record) -> Table:
    """(d,), after the layer whose states token models read."""
    means = record["hidden_mean"]
    stored = np.asarray(record["part_layers"], dtype=np.intp) + 1
    return np.asarray(means[stored[nearest(stored, len(means))]], dtype=np.float64)


def known_of_all(rows: Rows) -> Table:
    """(R, generators + 1): whose response it is, and the logarithm of its length in tokens. Token models know
    both, so both sides of a comparison of whole responses are told too."""
    generators = rows.generators
    whose = generators[:, None] == np.unique(generators)
    lengths = np.log1p([len(one.response_ids) for one in rows.encodings])
    return np.concatenate([whose, lengths[:, None]], axis=1).astype(np.float64)


def within(parts: Iterable[NDArray[np.intp]], count: int) -> NDArray[np.intp]:
    """A permutation of `count` rows that leaves every row in its part, and none in its place where a part
    has several."""
    rng, order = np.random.default_rng(SEED), np.arange(count)
    for part in parts:
        shuffled = rng.permutation(part)
        order[shuffled] = np.roll(shuffled, 1)
    return order

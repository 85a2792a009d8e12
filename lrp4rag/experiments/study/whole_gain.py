"""What relevance adds to text statistics where no token is judged: features of whole responses."""

from __future__ import annotations

import numpy as np

from lrp4rag.experiments.study.plan import WHOLE_BASE, WHOLE_WITH_RELEVANCE
from lrp4rag.features.blocks import RELEVANCE_ALONE
from lrp4rag.features.record import Record
from lrp4rag.features.response import POOLINGS
from lrp4rag.features.tokens import TOKEN_FEATURES
from lrp4rag.training.candidates import lexical_features, logistic
from lrp4rag.training.folds import Protocol
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome, cross_validated

LIKELIHOOD = ("log-probability", "entropy", "log rank")
PENALTIES = (0.001, 0.01, 0.1, 1.0)


def whole_gain(rows: Rows, protocol: Protocol, jobs: int) -> dict[str, Outcome]:
    """Logistic regression on the six lexical features, the response's length, and its mean log-probability,
    entropy and rank; and on the same with every feature of relevance, pooled in every way."""
    text = np.array([lexical_features(example) for example in rows.examples])
    records = list(rows.records())
    likelihood = np.array([[TOKEN_FEATURES[name](one).mean() for name in LIKELIHOOD] for one in records])
    lengths = np.log1p([len(one) for one in records])[:, None]
    base = np.concatenate([text, lengths, likelihood], axis=1)
    both = np.concatenate([base, np.array([_relevance(one) for one in records])], axis=1)
    return {
        name: cross_validated(
            logistic(inputs, name, PENALTIES), rows.labels, rows.groups, protocol, n_jobs=jobs
        )
        for name, inputs in ((WHOLE_BASE, base), (WHOLE_WITH_RELEVANCE, both))
    }


def _relevance(record: Record) -> list[float]:
    values = [TOKEN_FEATURES[name](record) for name in RELEVANCE_ALONE]
    return [pooling.of(one, record) for one in values for pooling in POOLINGS.values()]

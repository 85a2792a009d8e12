"""A token detector of plain passes, made by hand: nothing is trained."""

from __future__ import annotations

import numpy as np
import torch

from lrp4rag.classifiers.card import TokenInput
from lrp4rag.classifiers.decision import COLUMNS, DecisionRule
from lrp4rag.classifiers.ensemble import HIDDEN, WINDOWS, Ensemble, Logistic, Network, Stacker
from lrp4rag.classifiers.network import Perceptron
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.features.plain import PlainTable
from lrp4rag.reader import Reader
from tests.classifiers.samples import card_of

TRAINED = 0.4
"""The prevalence in its card."""
THRESHOLD = 0.5


def plain_detector(reader: Reader, group: str = "likelihoods", comparer: str = "") -> TokenModel:
    """Random weights, and a rule by which the tiny reader's responses are on both sides of the threshold. No
    token by itself is suspect, so that a suspect sentence is marked whole. `comparer` is the digest of the
    one that another `group` of features is of."""
    table = PlainTable((group,), ())
    columns = len(table.features)
    torch.manual_seed(0)
    weights = {name: 3 * array.numpy() for name, array in Perceptron(columns, HIDDEN).state_dict().items()}
    zeros, ones = np.zeros(columns, dtype=np.float32), np.ones(columns, dtype=np.float32)
    alone = Logistic(np.ones(1, dtype=np.float32), 0.0)
    among = Logistic(np.ones(2 * len(WINDOWS), dtype=np.float32), 0.0)
    ensemble = Ensemble({"plain": (Network(zeros, 2 * ones, weights),)}, Stacker(alone, among))
    weighed = {"highest 10 by themselves": 3.0}
    rule = DecisionRule(
        weights=tuple(weighed.get(name, 0.0) for name in COLUMNS), offset=14.0, token_threshold=1.0
    )
    blocks = {"plain": table}
    given = TokenInput(blocks=blocks, reading=rule, comparer=comparer)
    card = card_of(
        reader.identity.as_dict(), given, classifier="tokens", threshold=THRESHOLD, prevalence=TRAINED
    )
    return TokenModel(card, ensemble)

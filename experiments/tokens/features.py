"""Features of single response tokens: a number each, from relevance and the signals of the same pass."""

# mypy: disable-error-code="no-any-return"
# (numpy's own types say Any of sums and of single rows)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lrp4rag.features.record import Record, Values

SMALL_LOGIT = 1.0
"""Ratios are taken to logits of at least this size: near 0 they would reveal the logit only."""


@dataclass(frozen=True, slots=True)
class TokenFeature:
    """`of` gives a value for each of t tokens, (t,), or k of a profile, (k, t), in `unit` and `range`."""

    name: str
    group: str
    of: Callable[[Record], Values]
    unit: str
    range: str
    definition: str

    def __call__(self, record: Record) -> Values:
        return np.asarray(self.of(record), dtype=np.float64)


def of_segments(record: Record, name: str = "by_segment") -> Values:
    """Relevance of each passage (K, t), in logits, of a signal that has it by segment."""
    return record[name][2:]


def passages(record: Record) -> Values:
    return _of_passages(record, "by_segment", "passages")


def segment(number: int) -> Callable[[Record], Values]:
    return lambda record: record["by_segment"][number]


def leading_passage(record: Record) -> Values:
    return _padded(of_segments(record), 1).max(0)


def lead(record: Record) -> Values:
    """By how much the leading passage leads; with one passage, over nothing."""
    first, second = -np.sort(-_padded(of_segments(record), 2), axis=0)[:2]
    return first - second


def spread(record: Record) -> Values:
    """0 where one passage has all positive relevance, 1 where all have the same; 1 where none has any."""
    positive = np.maximum(of_segments(record), 0.0)
    count, total = len(positive), positive.sum(0)
    if count < 2:
        return np.where(total > 0, 0.0, 1.0) if count else np.ones(len(record))
    shares = np.divide(positive, total, out=np.full_like(positive, 1 / count), where=total > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.clip(-(shares * logs).sum(0) / np.log(count), 0.0, 1.0)


def agreement(record: Record) -> Values:
    """Whether the passage that leads is that of the token before; 1 at the first token."""
    leads = _padded(of_segments(record), 1).argmax(0)
    return np.concatenate([[1.0][: len(record)], (leads[1:] == leads[:-1]).astype(float)])


def negative_passages(record: Record) -> Values:
    return np.minimum(of_segments(record), 0.0).sum(0)


def over_mean(record: Record) -> Values:
    return passages(record) - _of_passages(record, "mean_by_segment", "mean_passages")


def over_largest(record: Record) -> Values:
    return passages(record) - _of_passages(record, "largest_by_segment", "largest_passages")


def share_of_logit(record: Record) -> Values:
    return _ratio(passages(record), record["logits"])


def cp_share(origin: int) -> Callable[[Record], Values]:
    return lambda record: _ratio(record["cp_by_segment"][origin], record["logits"])


def state_share(origin: int) -> Callable[[Record], Values]:
    """Of the last layer's state."""
    return lambda record: record["shares"][-1, origin]


def gain_over(signal: str) -> Callable[[Record], Values]:
    """By how much a token is likelier than with another prompt, whose log-probabilities are the signal."""
    return lambda record: record["logprob"] - record[signal]


gain, gain_over_other = gain_over("logprob_without_passages"), gain_over("logprob_other_passages")


def mean_lookback(record: Record) -> Values:
    return record["lookback"].mean((0, 1))


def position(record: Record) -> Values:
    return np.arange(len(record)) / max(len(record) - 1, 1)


def _of_passages(record: Record, by_segment: str, together: str) -> Values:
    """Of all passages; they may have been pushed as one segment."""
    if by_segment not in record.signals and together in record.signals:
        return record[together]
    return of_segments(record, by_segment).sum(0)


def _ratio(part: Values, whole: Values) -> Values:
    ratio: Values = part / np.maximum(np.abs(whole), SMALL_LOGIT)
    return ratio


def _padded(rows: Values, least: int) -> Values:
    """At least so many rows: a passage that is not there has no relevance."""
    missing = max(least - len(rows), 0)
    return np.concatenate([rows, np.zeros((missing, rows.shape[1]))]) if missing else rows


_LOGIT, _NAT = "logit", "nat"
_ALL = (
    ("passages", "relevance", passages, _LOGIT, "any", "relevance of all passages' tokens, summed"),
    ("question", "relevance", segment(1), _LOGIT, "any", "relevance of the question's tokens"),
    ("template", "relevance", segment(0), _LOGIT, "any", "relevance of the template's tokens"),
    ("leading passage", "relevance", leading_passage, _LOGIT, "any", "relevance of the passage with most"),
    ("lead", "relevance", lead, _LOGIT, "0 or more", "leading passage, less the next one (or less 0)"),
    ("spread", "relevance", spread, "-", "0 to 1", "entropy of positive relevance over passages / log K"),
    (
        "agreement",
        "relevance",
        agreement,
        "-",
        "0 or 1",
        "the token before has the same leading passage, or is none",
    ),
    ("negative passages", "relevance", negative_passages, _LOGIT, "0 or less", "passages that speak against"),
    ("over the mean logit", "contrast", over_mean, _LOGIT, "any", "passages, less those of the mean logit"),
    ("over the largest logit", "contrast", over_largest, _LOGIT, "any", "passages, less the largest logit's"),
    ("share of the logit", "relevance", share_of_logit, "-", "any", "passages / max(|logit|, 1)"),
    ("cp passages", "provenance", cp_share(0), "-", "any", "cp_lrp relevance of passages / max(|logit|, 1)"),
    ("cp question", "provenance", cp_share(1), "-", "any", "the same of the question"),
    ("cp template", "provenance", cp_share(2), "-", "any", "the same of the template"),
    ("cp response", "provenance", cp_share(3), "-", "any", "the same of the response's earlier tokens"),
    ("state passages", "provenance", state_share(0), "-", "any", "the passages' share of the last state"),
    ("state response", "provenance", state_share(3), "-", "any", "the earlier response's share of it"),
    ("logit", "likelihood", lambda record: record["logits"], _LOGIT, "any", "the token's logit"),
    ("log-probability", "likelihood", lambda record: record["logprob"], _NAT, "0 or less", "of the token"),
    ("entropy", "likelihood", lambda record: record["entropy"], _NAT, "0 or more", "of what could follow"),
    (
        "log rank",
        "likelihood",
        lambda record: np.log1p(record["rank"]),
        "-",
        "0 or more",
        "log(1 + number of likelier tokens)",
    ),
    ("gain", "likelihood", gain, _NAT, "any", "log-probability, less that without the passages"),
    ("gain over others", "likelihood", gain_over_other, _NAT, "any", "... less that with another's passages"),
    ("mean lookback", "attention", mean_lookback, "-", "0 to 1", "lookback ratio, mean over all heads"),
    ("position", "position", position, "-", "0 to 1", "how far into the response: the trivial control"),
)
TOKEN_FEATURES: dict[str, TokenFeature] = {one[0]: TokenFeature(*one) for one in _ALL}
"""By name. Those of group `relevance` and `contrast` are what this project is about; the others come from the
same pass, and `position` from none."""

LAYER_STEP = 3
"""Neighbouring layers say nearly the same."""


def lookback(record: Record) -> Values:
    heads = record["lookback"]
    return heads.reshape(-1, heads.shape[-1])


def shares(record: Record) -> Values:
    return _some_layers(record["shares"])


def norms(record: Record) -> Values:
    return np.log1p(_some_layers(record["norms"]))


def _some_layers(profile: Values) -> Values:
    """Every third layer, the last one among them: (l * P, t)."""
    return profile[::-1][::LAYER_STEP][::-1].reshape(-1, profile.shape[-1])


_PROFILES = (
    (
        "lookback",
        "attention",
        lookback,
        "-",
        "0 to 1",
        "mean attention to a prompt token / that + to a response token, by head",
    ),
    ("shares", "provenance", shares, "-", "any", "each origin's share of the state after every third layer"),
    ("norms", "provenance", norms, "-", "0 or more", "log(1 + length of each origin's part of that state)"),
)
PROFILES: dict[str, TokenFeature] = {one[0]: TokenFeature(*one) for one in _PROFILES}
"""Several numbers of each response token, one for each layer or attention head."""

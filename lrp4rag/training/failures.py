"""Why responses failed: the reasons that came up, most frequent first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why `count` responses failed, in the words of the first one, whose id is `first`."""

    reason: str
    count: int
    first: str


def reasons_of(failures: Mapping[str, str]) -> list[Reason]:
    """The reasons of these failures (id and reason), most frequent first.

    Reasons that differ in numbers only are one: of a thousand responses that are too long, each has another
    length.
    """
    groups: dict[str, list[str]] = {}
    for id, why in failures.items():
        groups.setdefault(_NUMBER.sub("0", why), []).append(id)
    reasons = [Reason(failures[ids[0]], len(ids), ids[0]) for ids in groups.values()]
    return sorted(reasons, key=lambda reason: -reason.count)

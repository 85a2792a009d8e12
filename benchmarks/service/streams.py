"""Look at every character of a stream: did it leave before it was judged, was it lost, or another's?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.service.client import Seen
from lrp4rag.guard.policy.policy import WITHHELD, Texts

TEXTS = {name: f"<{name}>" for name in Texts.model_fields}
"""What the policy of a benchmark says: all other text is the answer's, or should not come."""
POLICY = {"texts": TEXTS}
Records = Mapping[str, Mapping[str, Any]]


def content_of(text: str) -> str:
    """A chunk without the policy's texts and without white space."""
    for notice in TEXTS.values():
        text = text.replace(notice, "")
    return "".join(text.split())


def says_nothing(text: str) -> bool:
    """Whether it is Markdown only: what a withheld item, row or fence leaves, or what has no decision."""
    return re.fullmatch(r"[`~|:*_=>+#•‣◦▪-]*(\d{1,3}[.)])?\|*", text) is not None


def leaked(seen: Seen, answer: str, records: Records) -> tuple[int, int]:
    """Characters that left without a recorded decision to let them, and those that are lost. After a whole
    answer the policy may say something of it, which has no decision."""
    unjudged, at = 0, 0
    for text, _, decision in seen.chunks:
        record, left = records.get(decision.get("id", ""), {}), content_of(text)
        if record.get("kind") != "sentence":
            unjudged += 0 if says_nothing(left) else len(left)
            at = min(at + (0 if decision else len(text)), len(answer))
            continue
        served = record["start"] == at and record["action"] not in WITHHELD
        if not (served and left == content_of(answer[record["start"] : record["end"]])):
            unjudged += 0 if says_nothing(left) else len(left)
        at = record["end"]
    return unjudged, len(answer) - at


def crossed(seen: Seen, answers: Sequence[str]) -> int:
    """Characters of chunks that are not of this client's answer, and are of another's."""
    own, count = content_of(answers[seen.number]), 0
    for chunk, _, _ in seen.chunks:
        text = content_of(chunk)
        if not says_nothing(text) and text not in own and any(text in content_of(one) for one in answers):
            count += len(text)
    return count


def held(seen: Seen, answer: str, times: Sequence[float], records: Records) -> list[float]:
    """Seconds between the first word after a sentence, with which its end is known, and its coming out."""
    seconds = []
    for _, came, decision in seen.chunks:
        record = records.get(decision.get("id", ""), {})
        if record.get("kind") == "sentence":
            after = re.compile(r"\s*\S+").match(answer, record["end"])
            known = min(after.end() if after else len(answer), len(times)) - 1
            seconds.append(max(came - times[known], 0.0))
    return seconds

"""The page, the terminal and the record of a drift: all that was compared, and no text that is obeyed."""

from __future__ import annotations

import base64
import io
import json
import re

import pytest
from rich.console import Console

from lrp4rag.guard.monitoring.drift import Drift, compare
from lrp4rag.guard.monitoring.report import drift_page, over_time, record, render
from tests.guard.monitoring.logs import EARLY, LATE, pair, records, window

HOSTILE = '</td><script>alert(1)</script>$\\frac$ "><img src=x onerror=y>\x1b[2J'


@pytest.fixture(scope="module")
def worse() -> Drift:
    return compare(*pair(worse=0.4, only="travel", retrieval=0.2))


def shown(drift: Drift, width: int = 80) -> str:
    stream = io.StringIO()
    Console(width=width, file=stream).print(render(drift))
    return stream.getvalue()


def test_the_terminal_tells_what_drifted_and_what_to_do(worse: Drift) -> None:
    text = shown(worse)
    assert text.startswith("Drift: quality is worse (")
    assert "baseline  2026-10-21 12:00 to 2026-11-18 12:00 UTC: 450 answers" in text
    assert re.search(r"topic travel *\n *probability +0\.1\d\d +0\.5\d\d +\+0\.\d{3} \[\+0\.\d{3}, ", text)
    assert "Next: Topic travel may" in text
    assert "not recorded: score at the gate" in text
    assert "…" not in text


def test_the_record_has_everything_a_machine_needs(worse: Drift) -> None:
    found = json.loads(json.dumps(record(worse), allow_nan=False))
    assert found["drift"] is True
    assert found["window"]["answers"] == 400
    assert len(found["changes"]) == len(worse.changes)
    first = found["changes"][0]
    assert (first["measure"], first["group"], first["said"]) == ("probability", None, "worse")
    assert first["low"] < first["difference"] < first["high"]
    assert first["adjusted_p"] >= first["p"]
    (actions,) = (one for one in found["changes"] if one["measure"] == "actions")
    assert set(actions["parts"]) == {"serve", "mark", "withhold"}
    assert {"measure": "nothing retrieved", "group": None, "counts": [0, 0]} in found["not_compared"]
    assert found["next"]


def test_the_page_is_self_contained_and_has_its_figure(worse: Drift) -> None:
    page = drift_page(worse, "lrp4rag drift --since 7d")
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in page
    assert "<script" not in page
    assert not re.search(r"https?://", page)
    (image,) = re.findall(r'src="data:image/png;base64,([^"]+)" alt="[^"]+"', page)
    assert base64.b64decode(image)[:8] == b"\x89PNG\r\n\x1a\n"
    assert page.count('<tr><th scope="row">') == len(worse.changes)
    assert "Topic travel may" in page
    assert "lrp4rag drift --since 7d" in page


def test_names_are_text_on_the_page_and_the_terminal() -> None:
    def hostile(some: list[dict[str, object]]) -> list[dict[str, object]]:
        return [one | {"topic": HOSTILE if one["topic"] == "it" else one["topic"]} for one in some]

    early, late = hostile(records(100, 1)), hostile(records(100, 2, worse=0.5))
    drift = compare(window(EARLY, early), window(LATE, late))
    page = drift_page(drift, HOSTILE)
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "\x1b" not in page + shown(drift)
    assert "&lt;/td&gt;&lt;script&gt;" in page


def test_a_figure_of_little() -> None:
    """Without groups, scores or verdicts, of one kind of action."""
    bare = dict.fromkeys(("topic", "generator", "retrieval_score", "probability"))
    served = {"action": "serve", "reason": "grounded"}
    early, late = records(20, 1, **bare, **served), records(20, 2, **bare, **served)
    assert over_time(compare(window(EARLY, early), window(LATE, late))).startswith(b"\x89PNG")

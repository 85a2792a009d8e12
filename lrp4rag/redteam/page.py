"""`page`: a run as one self-contained page, with every failure in full."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from lrp4rag.redteam.record import Changes, Record
from lrp4rag.redteam.results import Result
from lrp4rag.redteam.tables import HEAD, rows, title
from lrp4rag.report.templates import html_template

STYLE = Path(__file__).with_name("page.css")


def page(record: Record, results: Sequence[Result], found: Changes | None = None) -> str:
    """HTML without script, to be written as UTF-8; what cases and targets say is text in it."""
    style = STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    failed = [one for one in results if not one.passed]
    text = html_template("page.html.j2", Path(__file__).parent).render(
        record=record,
        head=HEAD,
        rows=rows(record),
        kinds=[
            (title(kind), some)
            for kind in record.kinds
            if (some := [one for one in failed if one.case.kind == kind])
        ],
        failed=len(failed),
        changes=found,
        style=Markup(style),  # ours
        style_hash=digest,
    )
    return text.encode("utf-8", "replace").decode("utf-8")

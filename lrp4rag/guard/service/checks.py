"""Check the settings of a server without starting it: `lrp4rag serve --check`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from sqlalchemy.engine import make_url

from lrp4rag.classifiers.model import Model, detector_beside
from lrp4rag.classifiers.verdict import FLAGGED
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.upstream import http_upstream
from lrp4rag.reader.words import NONE
from lrp4rag.report.words import comparer_words
from lrp4rag.util.errors import InputError

ANSWERS_IN = 10
"""Seconds in which the upstream answers."""


def check(settings: Settings) -> Iterator[str]:
    """Yield lines that say what would run, without secrets. Raises `InputError` for what would not run."""
    detector = settings.detector
    if settings.reader is not None:
        detector = str(detector_beside(detector, settings.reader))
    fitted = Model.load(detector, settings.comparer, settings.device)
    if not fitted.plain:
        raise InputError("this detector cannot read along: train one of plain passes", field="detector")
    card = fitted.card
    yield f"detector   {detector}: {card.settings}, flags from {card.threshold:.3f}"
    if fitted.replacement is not None:
        yield f"comparer   {comparer_words(fitted.replacement.published)}"
    name, beside = settings.reader or card.reader["name"], ", beside which texts alone are compared"
    yield f"reader     {name}, {settings.dtype}{beside if fitted.texts and name != NONE else ''}"
    policy = settings.policy
    claims = ", ".join(f"{status} {getattr(policy.claims, status)}" for status in FLAGGED)
    yield (
        f"policy     {policy.name}, {policy.hash}: {claims}, most of it {policy.claims.most or 'the same'}; "
        f"checks: {', '.join(policy.checks) or 'none'}"
    )
    with AuditLog.open(settings.audit, key=settings.audit_key, texts=settings.keep_texts):
        yield f"audit      {make_url(settings.audit).render_as_string(hide_password=True)}"
    if settings.tokens:
        yield f"tokens     {', '.join(settings.tokens)}"
    else:
        yield "tokens     none: anyone may ask" if settings.open else "tokens     one for each run"
    yield f"upstream   {_upstream(settings)}"
    yield f"listens    {settings.host}:{settings.port}"


def _upstream(settings: Settings) -> str:
    if settings.demo:
        return "the reader itself (demonstration)"
    if settings.upstream is None:
        return "none: responses are judged, and none is asked for"
    base = str(settings.upstream).rstrip("/")
    try:
        names = asyncio.run(_models(settings))
    except (Problem, TimeoutError) as error:
        raise InputError(
            f"{base}/models does not answer as OpenAI's does ({error}); start the upstream, or mend "
            "its address or key",
            field="upstream",
        ) from None
    if settings.model is not None and settings.model not in names:
        raise InputError(
            f"the upstream has no model '{settings.model}': {', '.join(names[:10])}", field="model"
        )
    return f"{base}: {', '.join(names[:10])}"


async def _models(settings: Settings) -> list[str]:
    async with http_upstream(settings) as upstream, asyncio.timeout(ANSWERS_IN):
        return await upstream.models()

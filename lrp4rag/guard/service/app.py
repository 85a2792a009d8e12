"""`create_app`: the server's routes and middlewares, and the page at `/`, which needs no token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Query
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from lrp4rag import __version__
from lrp4rag.guard.audit import Entry
from lrp4rag.guard.service import chat, judging, metrics, problems
from lrp4rag.guard.service.access import AuthMiddleware, Client
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.requests import BodyLimitMiddleware, StrictRoute
from lrp4rag.guard.service.reviews import KINDS, FeedbackRequest, ReviewRequest, corrects
from lrp4rag.guard.service.settings import Settings
from lrp4rag.guard.service.state import Server, State, running
from lrp4rag.judge import Detector
from lrp4rag.report.templates import (
    SERVER_SCRIPTS,
    SERVER_STYLES,
    asset,
    content_policy,
    html_template,
    joined,
)
from lrp4rag.util.text import clipped

MOST_WAITING = 100
"""Answers in one reply that wait for a reviewer."""
MOST_DECISIONS = 1000
"""Decisions in one reply."""
LONGEST_QUESTION = 300
"""Characters of a question beside its decision."""
ROUTES = APIRouter(route_class=StrictRoute)


def create_app(settings: Settings, detector: Detector | None = None) -> FastAPI:
    """Return the ASGI application; the reader is loaded when it starts, unless a `detector` is given."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(settings, detector) as state:
            app.state.server = state
            yield

    app = FastAPI(
        title="lrp4rag",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        description="Judges answers of retrieval-augmented generation, and lets out judged text only.",
    )
    app.add_middleware(AuthMiddleware)
    app.add_middleware(BodyLimitMiddleware, largest=settings.largest_request)
    problems.register(app)
    _add_page(app, settings)
    for routes in (judging.ROUTES, chat.ROUTES, ROUTES):
        app.include_router(routes)
    return app


def _listed(entry: Entry) -> dict[str, Any]:
    """Return a decision in a list of many."""
    record = {name: value for name, value in entry.record.items() if name not in ("evidence", "texts")}
    return {"sequence": entry.sequence, "time": entry.time, **record}


@ROUTES.get("/v1/decisions", tags=["judge"])
def decisions(
    server: Server,
    client: Client,
    limit: Annotated[int, Query(ge=1, le=MOST_DECISIONS)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    questions: bool = False,
) -> dict[str, list[Any]]:
    """The last decisions on answers, the newest first; `before` is the sequence number of the last that
    is known. Without texts; with `questions`, each has its question, shortened, where that is kept."""
    log = server.recorder.log
    entries = log.latest(KINDS, before=before, limit=limit)
    texts = log.texts_named("question", entries) if questions else {}
    short = {id: {"question": clipped(text, LONGEST_QUESTION)} for id, text in texts.items()}
    return {"decisions": [_listed(entry) | short.get(entry.id, {}) for entry in entries]}


@ROUTES.get("/v1/decisions/{id}", tags=["judge"])
def decision(id: str, server: Server, client: Client) -> dict[str, Any]:
    """The record of a decision, as it stands in the audit log."""
    entry = server.recorder.log.get(id)
    if entry is None:
        raise Problem(404, "Not found", "there is no decision with this id")
    return vars(entry)


@ROUTES.get("/v1/reviews", tags=["review"])
def reviews(server: Server, client: Client) -> dict[str, list[Any]]:
    """Escalated answers that wait for a reviewer, the oldest first, with their texts where these are
    kept."""
    waiting = list(server.recorder.waiting().items())[:MOST_WAITING]
    return {"reviews": [{**record, "written": server.recorder.log.texts(id)} for id, record in waiting]}


@ROUTES.post("/v1/reviews", tags=["review"])
async def review(body: ReviewRequest, server: Server, client: Client) -> dict[str, str]:
    """A named reviewer's decision on an answer."""
    allowed = server.settings.reviewers
    if allowed and client not in allowed:
        raise Problem(403, "Forbidden", "this token may not review")
    return await _record_statement(server, "review", body, client)


@ROUTES.post("/v1/feedback", tags=["review"])
async def feedback(body: FeedbackRequest, server: Server, client: Client) -> dict[str, str]:
    """What a user says of an answer."""
    return await _record_statement(server, "feedback", body, client)


async def _record_statement(
    server: State, kind: Literal["review", "feedback"], body: ReviewRequest | FeedbackRequest, client: str
) -> dict[str, str]:
    entry = await run_in_threadpool(server.recorder.log.get, body.decision)
    if entry is None or entry.kind not in KINDS:
        raise Problem(404, "Not found", "there is no answer with this id", field="decision")
    if isinstance(body, ReviewRequest):
        body.require_within(entry.record.get("characters"))
    statement = body.model_dump(mode="json", exclude={"decision", "comment"})
    texts = {} if body.comment is None else {"comment": body.comment}
    id = await server.recorder.note(kind, by=client, of=body.decision, texts=texts, **statement)
    metrics.said(kind, body.said, corrects(body.said, entry.record))
    return {"id": id}


@ROUTES.get("/healthz", tags=["watch"])
async def healthz() -> dict[str, str]:
    """Alive."""
    return {"status": "alive"}


@ROUTES.get("/readyz", tags=["watch"])
async def readyz(server: Server) -> dict[str, str]:
    """Ready to judge: the reader is loaded, the audit log can be written, the upstream answers."""
    await server.ready()
    return {"status": "ready"}


@ROUTES.get("/metrics", tags=["watch"], response_class=PlainTextResponse)
async def prometheus(server: Server) -> PlainTextResponse:
    """Prometheus."""
    collected = await server.metrics()
    return PlainTextResponse(metrics.exposition(collected), media_type=metrics.CONTENT_TYPE)


HEADERS = {
    "Content-Security-Policy": content_policy(
        "'self'", "'self'", "connect-src 'self'", "img-src 'self'", "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",
}


def _add_page(app: FastAPI, settings: Settings) -> None:
    """Add the routes of a server's page."""
    files = {
        "icon.svg": (asset("icon.svg"), "image/svg+xml"),
        "page.css": (joined(SERVER_STYLES), "text/css"),
        "page.js": (joined(SERVER_SCRIPTS), "text/javascript"),
    }
    page = html_template("web/server.html.j2").render(
        asks=settings.demo or settings.upstream is not None,
        tokens=bool(settings.tokens),
        model=settings.model or "",
    )

    @app.get("/", include_in_schema=False)
    async def index() -> HTMLResponse:
        return HTMLResponse(page, headers=HEADERS)

    @app.get("/docs", include_in_schema=False)
    async def routes() -> HTMLResponse:
        return HTMLResponse(html_template("web/routes.html.j2").render(api=app.openapi()), headers=HEADERS)

    @app.get("/page/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in files:
            raise Problem(404, "Not found", "the page has no file of this name")
        content, kind = files[name]
        return Response(content, media_type=kind, headers=HEADERS)

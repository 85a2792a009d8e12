"""The page at `/`: it and its files are the same for everybody and need no token; each call that it makes
does."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.settings import Settings
from lrp4rag.report.assets import SERVER_SCRIPTS, SERVER_STYLES, asset, content_policy, joined
from lrp4rag.report.templates import html_template

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


def add(app: FastAPI, settings: Settings) -> None:
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

"""`lrp4rag serve`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import PATH
from lrp4rag.util.terminal import say

if TYPE_CHECKING:
    from fastapi import FastAPI

    from lrp4rag.guard.service.settings import Settings

QUESTION = "How long is parental leave for partners?"
PASSAGE = "Partners are entitled to 2 weeks of paid parental leave."
RESPONSE = "Partners are entitled to 4 weeks of paid parental leave."


@command()
@click.option("--config", type=PATH, help="YAML file of settings; docs/serve.md lists them.")
@click.option("--demo", is_flag=True, help="Without an upstream: the reader itself writes the answers.")
@click.option(
    "--upstream", metavar="URL", help="OpenAI-compatible server that writes the answers: http://…/v1"
)
@click.option("--model", help="Model to ask the upstream for.  [default: the client's]")
@click.option("--comparer", type=PATH, metavar="FILE", help="A file of lrp4rag calibrate.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 takes a free one.  [default: 8000]")
@click.option("--check", is_flag=True, help="Say what would run, or what is wrong, and start nothing.")
@click.option(
    "--new-token", metavar="NAME", help="Print a bearer token for a client, and its line for the settings."
)
@click.option(
    "--ray",
    is_flag=True,
    help="Several readers (the setting replicas), each in a replica of Ray Serve, on the cluster of "
    "RAY_ADDRESS or on this machine.",
)
def serve(
    config: Path | None,
    check: bool,
    new_token: str | None,
    demo: bool,
    ray: bool,
    **options: str | int | Path | None,
) -> None:
    """Stand between an application and its model: each sentence of an answer is judged before it is let out.

    POST /v1/judge judges a response by its question and passages. POST /v1/chat/completions is OpenAI's: it
    asks the upstream, and holds each sentence until it is judged and the decision is in the audit log. Any
    OpenAI client works; passages come in the extra field "lrp4rag". / is a page for people, and /docs lists
    all routes.

    \b
    Examples:
      lrp4rag serve --demo
      lrp4rag serve --upstream http://127.0.0.1:8080/v1 --model llama
      lrp4rag serve --config lrp4rag.yaml --check
      RAY_ADDRESS=auto lrp4rag serve --config lrp4rag.yaml --ray

    A setting also comes from the environment: LRP4RAG_HOST=0.0.0.0.
    """
    from lrp4rag.guard.audit import AuditLog
    from lrp4rag.guard.cluster.serving import serving
    from lrp4rag.guard.service.access import new_token as make_token
    from lrp4rag.guard.service.app import create_app
    from lrp4rag.guard.service.server import bind, listen
    from lrp4rag.guard.service.settings import Settings
    from lrp4rag.guard.service.state import load_detector

    if new_token is not None:
        token, hash = make_token()
        say(f"token, for the client: {token}")
        say(f"for the settings:\ntokens:\n  {new_token}: {hash}")
        return
    settings = Settings.load(config, demo=demo or None, **options)
    if check:
        from lrp4rag.guard.service.checks import check as run_checks

        for line in run_checks(settings):
            say(line)
        if ray:
            say(f"replicas   {settings.replicas}, by Ray at {os.environ.get('RAY_ADDRESS', 'this machine')}")
        return
    # A log that cannot be written to, and an address that is taken, are told before anything is loaded.
    AuditLog.open(settings.audit, key=settings.audit_key, texts=settings.keep_texts).close()
    bound = bind(settings)
    of_run: str | None = None
    if not settings.tokens and not settings.open:
        of_run, hash = make_token()
        settings = settings.model_copy(update={"tokens": {"started": hash}})

    def start(app: FastAPI, share: str | None = None) -> None:
        def announce(port: int) -> None:
            for line in _banner(settings, port, of_run, share):
                say(line)
            sys.stdout.flush()  # a log file, or a unit's journal, has it now

        listen(app, settings, bound, announce)

    if not ray:
        start(create_app(settings, load_detector(settings)))
        return
    with serving(settings, replicas=settings.replicas, address=None) as (door, share):
        start(door, str(share))


def _banner(settings: Settings, port: int, token: str | None, share: str | None = None) -> list[str]:
    """Return lines that say what to type next."""
    from sqlalchemy.engine import make_url

    audit = make_url(settings.audit).render_as_string(hide_password=True)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{port}"
    lines = [f"{url}  (open it in a browser; routes: {url}/docs; audit log: {audit})"]
    if share is not None:
        lines.append(share)
    if token is not None:
        lines.append(f"token of this run: {token}")
    shown = token or ("TOKEN" if settings.tokens else None)
    head = f"-H 'Authorization: Bearer {shown}' " if shown else ""

    def curl(route: str, body: dict[str, Any]) -> str:
        data = shlex.quote(json.dumps(body))
        return f"  curl -sN {url}{route} {head}-H 'Content-Type: application/json' -d {data}"

    lines += ["try:", curl("/v1/judge", {"question": QUESTION, "passages": [PASSAGE], "response": RESPONSE})]
    if settings.demo or settings.upstream is not None:
        messages = [{"role": "user", "content": QUESTION}]
        chat = {"model": "any", "stream": True, "messages": messages, "lrp4rag": {"passages": [PASSAGE]}}
        lines.append(curl("/v1/chat/completions", chat))
    else:
        lines.append("no chat: give --upstream URL, or --demo to try one")
    return lines

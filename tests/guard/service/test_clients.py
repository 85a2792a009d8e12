"""Clients that people have, against a server on a socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from openai import APIStatusError, AsyncOpenAI, OpenAI

from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.app import create_app
from tests.guard.service.conftest import PASSAGES, QUESTION, TEXTS, UNSUPPORTED, asked, listening
from tests.guard.service.scripted_upstream import Script, events, serving

MESSAGES = [{"role": "user", "content": QUESTION}]
EXTRA = {"lrp4rag": {"passages": PASSAGES}}
EXPECTED = f"{UNSUPPORTED} It is 31 metres tall. Fish is sold nearby.\n\n{TEXTS.uncertain}"
TOKEN, HASH = new_token()


@pytest.fixture
def address(detector, settings, script: Script, judged: list[str]) -> Iterator[str]:
    """Of a server with a token, before the scripted upstream."""
    script.stream = events("It is ", "WRONG. It is 31 metres tall. Fish is sold nearby.")
    script.longest = 40
    with serving(script, models=("tall",)) as upstream:
        app = create_app(settings(upstream=upstream, open=False, tokens={"app": HASH}), detector)
        with listening(app) as url:
            yield url


def text_of(chunks) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_openais_client(address: str) -> None:
    with OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
        whole = client.chat.completions.create(model="m", messages=MESSAGES, extra_body=EXTRA)
        assert whole.choices[0].message.content == EXPECTED
        assert whole.usage is not None
        assert whole.usage.total_tokens == 3
        stream = client.chat.completions.create(model="m", messages=MESSAGES, extra_body=EXTRA, stream=True)
        chunks = list(stream)
        assert text_of(chunks) == EXPECTED
        actions = [(chunk.model_extra or {}).get("lrp4rag", {}).get("action") for chunk in chunks]
        assert actions == ["withhold", "serve", "serve", "mark", "mark"]
        assert [model.id for model in client.models.list()] == ["tall"]
    with OpenAI(base_url=address, api_key="wrong", max_retries=0) as client:
        with pytest.raises(APIStatusError) as caught:
            client.chat.completions.create(model="m", messages=MESSAGES, extra_body=EXTRA)
        assert caught.value.status_code == 401


def test_openais_client_asynchronously(address: str) -> None:
    async def run() -> None:
        async with AsyncOpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:

            async def one() -> str:
                stream = await client.chat.completions.create(
                    model="m", messages=MESSAGES, extra_body=EXTRA, stream=True
                )
                return text_of([chunk async for chunk in stream])

            assert await asyncio.gather(*(one() for _ in range(5))) == [EXPECTED] * 5

    asyncio.run(run())


def test_vanished_clients_free_their_slots(address: str, script: Script) -> None:
    """Dozens of them, each in the middle of an answer."""
    script.stream = events("It is 31 metres tall. It is old. ", "x" * 20_000)
    script.longest = 4
    with OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
        for _ in range(20):
            stream = client.chat.completions.create(
                model="m", messages=MESSAGES, extra_body=EXTRA, stream=True
            )
            assert next(iter(stream)).choices[0].delta.content == "It is 31 metres tall. "
            stream.close()
        script.stream, script.longest = events("It is 31 metres tall."), 40
        started = time.monotonic()
        whole = client.chat.completions.create(model="m", messages=MESSAGES, extra_body=EXTRA)
        assert whole.choices[0].message.content == "It is 31 metres tall."
        assert time.monotonic() - started < 5


def test_one_who_leaves_before_the_first_sentence_is_not_waited_for(address: str, script: Script) -> None:
    """Of an answer that is written to nobody, the upstream is told, and nothing more is judged."""
    import httpx

    script.stream, script.longest = b": ping\n\n" * 200_000, 4
    for stream in (True, False):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(timeout=0.5, headers=headers) as client, pytest.raises(httpx.TimeoutException):
            client.post(f"{address}/chat/completions", json=asked(stream=stream))
    script.stream, script.longest = events("It is 31 metres tall."), 40
    with OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
        whole = client.chat.completions.create(model="m", messages=MESSAGES, extra_body=EXTRA)
        assert whole.choices[0].message.content == "It is 31 metres tall."

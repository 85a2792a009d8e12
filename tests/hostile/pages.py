"""Pages read as a browser would."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from markdown_it import MarkdownIt

from lrp4rag.util.text import visible

_READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@cache
def structure(page: str) -> tuple[str, ...]:
    """What a browser makes of a page: its elements in their order, without the words in them."""
    found: list[str] = []
    for token in _READER.parse(page):
        if token.type != "inline":
            found.append(f"{token.type} {token.tag}")
            continue
        for child in token.children or []:
            kind = f"{child.type} {child.tag}"
            if not (kind.startswith("text") and found[-1].startswith("text")):
                found.append(kind)
    return tuple(found)


def words(page: str) -> str:
    """The text that a browser shows of a page."""
    parts = []
    for token in _READER.parse(page):
        parts += [token.content] if token.type != "inline" else [_text(one) for one in token.children or []]
    return "".join(parts)


def _text(token: Any) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else str(token.content)


def links(page: str) -> set[str]:
    """Where links and images lead."""
    inline = [child for token in _READER.parse(page) for child in token.children or []]
    found = {str(child.attrs.get("href") or child.attrs.get("src") or "") for child in inline}
    return found - {""}


def shown(value: str) -> str:
    """What a person is to see of a name."""
    return re.sub("[ \n]+", " ", visible(value)).strip()


def harmless(value: str) -> str:
    """Another name; none in place of white space."""
    return "name" if shown(value) else ""


KNOWN: dict[Any, tuple[str, ...]] = {}


def known(name: str, make: Callable[..., str], *given: Any) -> tuple[str, ...]:
    """The structure of a page with harmless names, made once."""
    if (name, *given) not in KNOWN:
        KNOWN[name, *given] = structure(make(*given))
    return KNOWN[name, *given]


def safe_links(page: str) -> bool:
    return all(re.fullmatch(r"(https://arxiv\.org/abs/)?[\w.#/-]+", link) for link in links(page))

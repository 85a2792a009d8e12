"""The commands that make the stores a page is of, told from what the stores say of themselves."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.paper.context import Context
from lrp4rag.features.parts import MATRIX, RELEVANCE
from lrp4rag.reader.weights import DEFAULT_READER


def extractions(context: Context) -> Iterator[str]:
    """A command for each store, and for each set of parts that some generators have in it."""
    rows = next(iter(context.subsets.values())).rows
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, subset in context.subsets.items():
        groups.setdefault(tuple(context.extras(subset)), []).append(name)
    for parts, generators in groups.items():
        yield _command(rows.store, parts, generators if len(groups) > 1 else ())
    for name, variant in context.variants.items():
        having = [one for one, subset in context.subsets.items() if context.variants_of(subset)[name]]
        yield _command(variant.store, (), having if len(having) < len(context.subsets) else ())


def _command(store: Any, extras: Sequence[str], generators: Sequence[str]) -> str:
    made = store.configuration
    return extraction(store.folder.name, made.as_dict(), extras, generators)


def extraction(
    folder: str, configuration: Mapping[str, Any], extras: Sequence[str], generators: Sequence[str]
) -> str:
    """The command that makes a store of this configuration, with parts beside relevance."""
    reader = configuration["reader"]
    name, dtype = Path(str(reader["name"])).name, reader["dtype"]
    words = ["lrp4rag", "extract", "DATA", "--store", folder]
    words += [] if name == DEFAULT_READER else ["--reader", name]
    words += [] if dtype == "float32" else ["--dtype", dtype]
    words += [] if configuration["composite"] == "attnlrp" else ["--composite", configuration["composite"]]
    words += [] if reader["chat_template"] else ["--no-chat-template"]
    words += [] if configuration["truncation"] == "error" else ["--truncate", configuration["truncation"]]
    words += ["--parts", ",".join([RELEVANCE, *(one for one in extras if one != MATRIX)])]
    words += ["--matrix", MATRIX.partition("-")[2]] if MATRIX in extras else []
    return shlex.join([*words, *(word for one in generators for word in ("--generator", one))])

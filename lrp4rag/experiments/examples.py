"""Examples as a store keeps them: a JSON line each, with the places of the parts in the prompt."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from lrp4rag.errors import InputError
from lrp4rag.example import Example


def dump_examples(examples: Iterable[Example]) -> bytes:
    return b"".join(_adapter().dump_json(example) + b"\n" for example in examples)


def parse_examples(content: bytes, path: Path) -> list[Example]:
    """What `dump_examples` gave; raises `InputError` naming the path and the line for anything else."""
    examples = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            examples.append(_adapter().validate_json(line))
        except ValidationError as error:
            field = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise InputError(error.errors()[0]["msg"], path=path, line=number, field=field or None) from error
    return examples


@cache
def _adapter() -> TypeAdapter[Example]:
    return TypeAdapter(Example)

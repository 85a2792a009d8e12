"""Examples as a store keeps them: a JSON line each, with the places of the parts in the prompt."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.types import first_fault


def dump_examples(examples: Iterable[Example]) -> bytes:
    return b"".join(_adapter().dump_json(example) + b"\n" for example in examples)


def parse_examples(content: bytes, path: Path) -> list[Example]:
    """What `dump_examples` gave; raises `InputError` naming the path and the line for anything else."""
    examples = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            examples.append(_adapter().validate_json(line))
        except ValidationError as error:
            fault, field = first_fault(error)
            raise InputError(fault, path=path, line=number, field=field) from error
    return examples


@cache
def _adapter() -> TypeAdapter[Example]:
    return TypeAdapter(Example)

"""manifest.json and examples.jsonl: how a store was made, and the examples it was made of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.example import Example, Label, Span
from lrp4rag.lrp.composites import COMPOSITES
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.identity import require_identity
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.strict_json import read_record, require_seal, sealed
from lrp4rag.util.types import Count, first_fault

FORMAT = 3


@dataclass(frozen=True, slots=True)
class Configuration:
    """What one store shares. `reader` is `ReaderIdentity.as_dict()`."""

    reader: dict[str, Any]
    composite: str
    target: str = "response"
    truncation: Truncation = "error"

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    def require(self, wanted: Configuration, path: Path) -> None:
        """Raise `InputError`, which names `path`, where the two differ by more than the words for the
        reader."""
        ours, theirs = self.as_dict(), wanted.as_dict()
        for name in theirs:
            old, new = (_comparable(configuration[name]) for configuration in (ours, theirs))
            if old != new:
                raise InputError(
                    f"the store was made with {name} {old}, not {new}; name another folder", path=path
                )


class Data(BaseModel):
    """How many examples a file holds, and the SHA-256 of the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    examples: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the file says. While examples.jsonl is replaced, it is that of `data` or of `coming`."""

    configuration: Configuration
    data: Data | None = None
    coming: Data | None = None

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest. Raises `InputError` for a file that is not one of this format, or was changed."""
        record = read_record(path, "a manifest")
        if record.get("format") != FORMAT:
            raise InputError(
                f"not a store of format {FORMAT}; extract it again, into a new folder", path=path
            )
        try:
            parsed = _Record.model_validate(record)
        except ValidationError as error:
            fault, field = first_fault(error)
            raise InputError(f"not a manifest: {fault}", path=path, field=field) from error
        require_seal(record, path, "the manifest")
        configuration = Configuration(record["reader"], parsed.composite, parsed.target, parsed.truncation)
        return cls(configuration, parsed.data, parsed.coming)

    def write(self, path: Path) -> None:
        entries = {"data": self.data, "coming": self.coming}
        record = self.configuration.as_dict() | {
            name: data.model_dump() for name, data in entries.items() if data is not None
        }
        write_atomically(path, json.dumps(sealed(record), indent=2) + "\n")

    def accepts(self, digest: str | None) -> bool:
        """Say whether examples.jsonl may have this SHA-256, or with None, whether it may be missing."""
        accepted = {None if self.data is None else self.data.sha256}
        if self.coming is not None:
            accepted.add(self.coming.sha256)
        return digest in accepted


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key not in ("name", "quantised")}
    return value


def _known(composite: str) -> str:
    if composite not in COMPOSITES:
        raise ValueError(f"not one of {', '.join(COMPOSITES)}")
    return composite


class _Record(BaseModel):
    """The file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal[3]
    reader: Annotated[dict[str, Any], AfterValidator(require_identity)]
    composite: Annotated[str, AfterValidator(_known)]
    target: str
    truncation: Truncation
    data: Data | None = None
    coming: Data | None = None
    sha256: str


class _StoredExample(BaseModel):
    """An example's fields, in the order in which they are written; nothing is left to a default."""

    id: str
    question: str
    passages: tuple[str, ...]
    prompt: str
    spans: tuple[Span, ...]
    response: str | None
    labels: tuple[Label, ...] | None
    source: str
    generator: str | None


def dump_examples(examples: Iterable[Example]) -> bytes:
    """Write a JSON line per example, with the places of the parts in the prompt."""
    names = _StoredExample.model_fields
    rows = (
        _StoredExample.model_construct(**{name: getattr(example, name) for name in names})
        for example in examples
    )
    return b"".join(row.model_dump_json().encode() + b"\n" for row in rows)


def parse_examples(content: bytes, path: Path) -> list[Example]:
    """Read what `dump_examples` wrote; raises `InputError` naming the path and the line for anything else."""
    examples = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            examples.append(Example(**dict(_StoredExample.model_validate_json(line))))
        except ValidationError as error:
            fault, field = first_fault(error)
            raise InputError(fault, path=path, line=number, field=field) from error
        except InputError as error:
            raise InputError(error.reason, path=path, line=number, field=error.field) from error
    return examples

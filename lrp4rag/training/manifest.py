"""manifest.json: how a store was made, and the hash of its examples.jsonl."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.errors import InputError
from lrp4rag.files import write_atomically
from lrp4rag.lrp.composites import COMPOSITES
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.identity import require_identity
from lrp4rag.strict_json import read_record, require_seal, sealed
from lrp4rag.types import Count, first_fault

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
        """Raise `InputError` that names `path` where what it is of is not made as `wanted` is."""
        found, asked = self.as_dict(), wanted.as_dict()
        for name in asked:
            # The name a reader goes by may differ where its hashes do not.
            old, new = (_comparable(configuration[name]) for configuration in (found, asked))
            if old != new:
                raise InputError(
                    f"the store was made with {name} {old}, not {new}; name another folder", path=path
                )


@dataclass(frozen=True, slots=True)
class Data:
    """How many examples a file holds, and the SHA-256 of the file."""

    examples: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the file says. While examples.jsonl is replaced, it is that of `data` or of `coming`."""

    configuration: Configuration
    data: Data | None = None
    coming: Data | None = None

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Raises `InputError` for what is no manifest of this format, or not as it was written."""
        record = read_record(path, "a manifest")
        if record.get("format") != FORMAT:
            raise InputError(
                f"not a store of format {FORMAT}; extract it again, into a new folder", path=path
            )
        try:
            found = _Record.model_validate(record)
        except ValidationError as error:
            fault, field = first_fault(error)
            raise InputError(f"not a manifest: {fault}", path=path, field=field) from error
        require_seal(record, path, "the manifest")
        configuration = Configuration(record["reader"], found.composite, found.target, found.truncation)
        return cls(configuration, _data(found.data), _data(found.coming))

    def write(self, path: Path) -> None:
        noted = {"data": self.data, "coming": self.coming}
        record = self.configuration.as_dict() | {
            name: asdict(data) for name, data in noted.items() if data is not None
        }
        write_atomically(path, json.dumps(sealed(record), indent=2) + "\n")

    def accepts(self, digest: str | None) -> bool:
        """Whether examples.jsonl may have this SHA-256, or with None, whether it may be missing."""
        accepted = {None if self.data is None else self.data.sha256}
        if self.coming is not None:
            accepted.add(self.coming.sha256)
        return digest in accepted


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key != "name"}
    return value


def _data(found: _Data | None) -> Data | None:
    return None if found is None else Data(found.examples, found.sha256)


def _known(composite: str) -> str:
    if composite not in COMPOSITES:
        raise ValueError(f"not one of {', '.join(COMPOSITES)}")
    return composite


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Data(_Strict):
    examples: Count
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Record(_Strict):
    """The file."""

    format: Literal[3]
    reader: Annotated[dict[str, Any], AfterValidator(require_identity)]
    composite: Annotated[str, AfterValidator(_known)]
    target: str
    truncation: Truncation
    data: _Data | None = None
    coming: _Data | None = None
    sha256: str

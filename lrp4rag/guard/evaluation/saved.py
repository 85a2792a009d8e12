"""Results as a file: a baseline for later ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lrp4rag.classifiers.card import Card, package_versions
from lrp4rag.guard.evaluation.evaluate import Evaluation
from lrp4rag.guard.evaluation.result import Result
from lrp4rag.guard.policy import Policy
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.strict_json import finite_or_none, read_record
from lrp4rag.util.types import first_fault, ids_once

FORMAT = 1
EXAMPLES = "examples"
HOW = "make one with: lrp4rag evaluate DATA --out FILE"


class Saved(BaseModel):
    """The part of a file that is read; the rest is for people."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    made_with: dict[Annotated[str, Field(max_length=100)], str | float | None]
    examples: Annotated[tuple[Result, ...], Field(min_length=1), AfterValidator(ids_once)]


def read_saved(path: Path) -> Saved:
    """Raises `InputError` naming the field of an invalid baseline, or of one in another format."""
    what = "a baseline of this command"
    try:
        record = read_record(path, what)
    except OSError as error:
        raise InputError(f"cannot be read: {first_line(error)}; {HOW}", path=path) from error
    if EXAMPLES not in record or "format" not in record:
        raise InputError(f"not {what}; {HOW}", path=path)
    if record["format"] != FORMAT:
        raise InputError(
            f"it has another format than this lrp4rag reads ({FORMAT}); {HOW}", path=path, field="format"
        )
    try:
        return Saved.model_validate(record)
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(message, path=path, field=field) from None


def made_with(
    evaluation: Evaluation, card: Card, name: str, policy: Policy, date: datetime | None = None
) -> dict[str, str | float | None]:
    """Collect what results depend on beside the examples. `name` is the detector's."""
    return {
        **({} if evaluation.comparer is None else {"comparer": str(evaluation.comparer)}),
        "lrp4rag": package_versions()["lrp4rag"],
        "detector": Path(name).name,
        "detector_sha256": card.sha256,
        "threshold": evaluation.threshold,
        "prevalence": evaluation.prevalence,
        "reader": str(card.reader["digest"]),
        "policy": policy.name,
        "policy_hash": policy.hash,
        "date": None if date is None else date.date().isoformat(),
    }


def written(record: Mapping[str, Any]) -> str:
    """Return a record as JSON, with a line for each example, so that two files can be laid side by side."""
    rest = {name: value for name, value in record.items() if name != EXAMPLES}
    head = json.dumps(finite_or_none(rest), indent=2, allow_nan=False).removesuffix("\n}")
    rows = ",\n".join(
        f"    {json.dumps(finite_or_none(example), allow_nan=False)}" for example in record[EXAMPLES]
    )
    return f'{head},\n  "{EXAMPLES}": [\n{rows}\n  ]\n}}\n'

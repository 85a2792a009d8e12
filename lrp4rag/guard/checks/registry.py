"""The checks, by the names that a policy calls them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lrp4rag.guard.checks.check import Check, CheckInput, Finding, OverBudget
from lrp4rag.guard.checks.citations import Citations
from lrp4rag.guard.checks.conflicts import Conflicts
from lrp4rag.guard.checks.disguise import Disguise
from lrp4rag.guard.checks.facts import Facts
from lrp4rag.guard.checks.gate import RetrievalGate
from lrp4rag.guard.checks.omissions import Omissions
from lrp4rag.guard.checks.outdated import Outdated
from lrp4rag.guard.checks.planted import Planted
from lrp4rag.util.types import first_fault

_KINDS = (RetrievalGate, Conflicts, Outdated, Citations, Disguise, Planted, Facts, Omissions)
CHECKS: dict[str, type[Check]] = {kind.name: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings by the name of the check; an unfinished check is `unavailable`, with the reason."""

    findings: Mapping[str, tuple[Finding, ...]]
    unavailable: Mapping[str, str]
    seconds: Mapping[str, float]

    def of(self, check: str, *kinds: str) -> list[Finding]:
        """Return the findings of a check that are of some kinds."""
        return [finding for finding in self.findings.get(check, ()) if finding.kind in kinds]

    @property
    def every(self) -> list[Finding]:
        return [finding for findings in self.findings.values() for finding in findings]

    @property
    def took(self) -> float:
        """Return the seconds of all checks."""
        return sum(self.seconds.values())


def make_check(name: str, settings: Mapping[str, Any]) -> Check:
    """Return a check with settings. Raises ValueError for an unknown check, or a setting that it lacks."""
    if name not in CHECKS:
        raise ValueError(f"there is no check '{name}'; there are: {', '.join(CHECKS)}")
    kind: Any = CHECKS[name]
    names = [setting.name for setting in fields(kind)]
    for setting in settings:
        if setting not in names:
            raise ValueError(f"{name} has no setting '{setting}'; it has: {', '.join(names) or 'none'}")
    try:
        check: Check = TypeAdapter(kind).validate_python(dict(settings))
        return check
    except ValidationError as error:
        message, field = first_fault(error)
        raise ValueError(f"{name}.{field}: {message}") from None


def run_checks(checks: Mapping[str, Check], inputs: CheckInput, *, budget: float) -> Checked:
    """Run the checks that have what they need; a check that takes more than `budget` seconds, or fails, is
    unavailable."""
    findings, unavailable, seconds = {}, {}, {}
    for name, check in checks.items():
        if any(getattr(inputs, need) is None for need in check.needs):
            continue
        started = time.monotonic()
        try:
            findings[name] = tuple(check(replace(inputs, deadline=started + budget)))
        except OverBudget:
            unavailable[name] = f"not done in {budget:g} s"
        except Exception as error:  # its message may hold what people wrote
            unavailable[name] = f"this check failed on this answer ({type(error).__name__})"
        seconds[name] = time.monotonic() - started
    return Checked(findings, unavailable, seconds)

"""`Decision`: what is done with an answer, as reports show it. A policy of the guardrail makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rich.text import Text

from lrp4rag.util.text import one_line, visible

ACTION_STYLES = {
    "serve": "green",
    "mark": "yellow",
    "disclose": "yellow",
    "escalate": "magenta",
    "withhold": "red",
}


@dataclass(frozen=True, slots=True)
class DecisionWords:
    """A decision for people.

    * `action` and `reason`: what is done, and why; `measures` such as "faithfulness 67%", empty without any.
    * `findings`: the name of each check that found something wrong, with its words.
    * `unavailable`: the checks that did not finish, with the cause.
    * `message`: what the reader of the answer is told; empty for nothing.
    """

    action: str
    reason: str
    measures: str = ""
    findings: tuple[tuple[str, str], ...] = ()
    unavailable: tuple[str, ...] = ()
    message: str = ""


class Decision(Protocol):
    """What is done with an answer."""

    def record(self) -> dict[str, Any]:
        """Return the decision as JSON values; passages count from 1."""
        ...

    def words(self) -> DecisionWords: ...


def decision_lines(decision: Decision, id: str = "") -> list[Text]:
    """Return lines for a terminal: action, reason and measures, findings, and the notice to the reader."""
    words = decision.words()
    line = Text().append(f"{words.action:<9}", style=ACTION_STYLES[words.action])
    line.append(f"{one_line(id, 40)}  " if id else "").append(words.reason, style="bold")
    lines = [line.append(f"  {words.measures}", style="dim")]
    lines += [Text(f"  {check}: {visible(finding)}") for check, finding in words.findings]
    lines += [Text(f"  {visible(cause)}", style="red") for cause in words.unavailable]
    if words.message:
        lines.append(Text(f"  The reader is told: {visible(words.message)}", style="dim"))
    return lines

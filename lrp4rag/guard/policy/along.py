"""`DecidingAlong`: what is done with each sentence of an answer while it is written, and with the whole of
it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lrp4rag.example import Example
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.registry import Checked, run_checks
from lrp4rag.guard.policy.assess import Assessment, assess, record_finding
from lrp4rag.guard.policy.decide import CHECK_OF, OF_SENTENCES, Decided, of_sentence, rule_of, strictest
from lrp4rag.guard.policy.notices import in_place, marked
from lrp4rag.guard.policy.policy import WITHHELD, Action, Policy, Reason
from lrp4rag.guard.policy.texts import corrected
from lrp4rag.report.along import record_piece
from lrp4rag.streaming import JudgedPiece, ReadingAlong, verdict_of
from lrp4rag.util.sentences import Piece

DISTRUSTED: tuple[Reason, ...] = (
    "fabricated citation",
    "misattributed citation",
    "disguised text",
    "planted instructions",
)
UNTOLD: tuple[Reason, ...] = ("unavailable", "unlike training data")


@dataclass(frozen=True, slots=True)
class DecidedPiece:
    """What is done with a piece of an answer; without `judged`, it could not be judged."""

    piece: Piece
    decided: Decided
    judged: JudgedPiece | None = None
    checked: Checked = field(default_factory=lambda: Checked({}, {}, {}))


class DecidingAlong:
    """The rules of a policy for sentences, on one answer: each piece is decided on, then let out.

    `policy` and `example` (question and passages) are those of the answer. A piece that states nothing (a
    heading, "Okay.") waits for the next one that does (`ReadingAlong.due`), and is decided on with that.
    """

    def __init__(self, policy: Policy, example: Example) -> None:
        self.policy, self.example = policy, example
        wanted = {CHECK_OF[kind] for kind in OF_SENTENCES}
        self._checks = {name: check for name, check in policy.made.items() if name in wanted}
        self.judged: list[JudgedPiece] = []
        """What could be judged of the answer, in its order."""
        self._actions: Counter[Action] = Counter()
        self.missed = False
        """Whether a piece could not be judged."""
        self._notice = ""

    def decide(self, reading: ReadingAlong, piece: Piece, *, followed: bool = False) -> DecidedPiece:
        """Judge a piece, and decide as on an answer that ends with it, by what the checks of sentences say
        too; `followed` says that another piece comes after it. It changes nothing here; raises what judging
        raises."""
        judged, checked = reading.judge(piece, followed=followed), self._checked(piece.text)
        holding = [self._of_status(judged), rule_of(self.policy, checked, *OF_SENTENCES)]
        decided = strictest([one for one in holding if one is not None])
        return DecidedPiece(piece, decided, judged, checked)

    def _of_status(self, judged: JudgedPiece) -> Decided:
        """By its own status, and by how many of the answer's sentences so far are suspect: what is right by
        itself is let out."""
        if judged.abstained:
            return Decided(self.policy.abstained, "unlike training data", "abstained")
        if not judged.suspect:
            reason: Reason = "grounded" if judged.status == "supported" else "states nothing"
            return Decided("serve", reason, "verdict")
        counts = Counter(one.status for one in (*self.judged, judged))
        return of_sentence(self.policy, judged.status, counts)

    def unavailable(self, piece: Piece) -> DecidedPiece:
        """Of a piece that could not be judged."""
        return DecidedPiece(piece, Decided(self.policy.unavailable, "unavailable", "unavailable"))

    def let_out(self, found: DecidedPiece) -> str:
        """What is shown of a piece: itself, with a mark, or a notice in its place. A notice that stands
        already is not repeated."""
        if found.judged is None:
            self.missed = True
        else:
            self.judged.append(found.judged)
        action, texts = found.decided.action, self.policy.texts
        self._actions[action] += 1
        before, self._notice = self._notice, ""
        told = [one for span in found.judged.spans for one in span.contradictions] if found.judged else []
        if action == "serve":
            return found.piece.text
        if action not in WITHHELD:
            return marked(found.piece, corrected(texts.correction, told[0]) if told else texts.mark)
        if found.decided.reason in UNTOLD:
            self._notice = texts.unavailable_notice
        elif found.decided.reason in DISTRUSTED:
            self._notice = texts.distrusted_notice
        else:
            self._notice = corrected(texts.contradicted_notice, told[0]) if told else texts.notice
        return in_place(found.piece, "" if self._notice == before else self._notice)

    @property
    def actions(self) -> Mapping[Action, int]:
        """How many pieces were let out by each action."""
        return self._actions

    @property
    def abstained(self) -> bool:
        """Whether a piece is unlike the training data."""
        return any(one.abstained for one in self.judged)

    @property
    def stops(self) -> bool:
        """Whether so many were withheld that the rest is not waited for."""
        most = self.policy.sentences.stop_after
        return most is not None and sum(self._actions[one] for one in WITHHELD) >= most

    def assess(self, response: str, threshold: float | None) -> Assessment:
        """The answer as a whole, of the sentences as they were judged; it is called hallucinated from
        `threshold` on."""
        verdict = None if self.missed else verdict_of(self.judged, threshold)
        return assess(self.policy, self.example.with_response(response), verdict)

    def _checked(self, text: str) -> Checked:
        """What the policy wants to know of a sentence by itself."""
        given = CheckInput(self.example.question, self.example.sources, text)
        return run_checks(self._checks, given, budget=self.policy.budget)


def record_decided(found: DecidedPiece) -> dict[str, Any]:
    """What there is to tell of a piece beside what is done with it, as JSON values; of one that is withheld,
    nothing that it says. Empty where it was not judged."""
    if found.judged is None:
        return {}
    told = record_piece(found.judged)
    findings = [record_finding(one) for one in found.checked.every]
    if found.decided.action in WITHHELD:  # what is withheld is not told in another place
        told["contradictions"] = [{**one, "text": None} for one in told["contradictions"]]
        told["nearest"] = told["nearest"] and {**told["nearest"], "words": []}
        findings = [{name: one[name] for name in ("check", "kind", "passages")} for one in findings]
    names = ("start", "end", "status", "probability", "suspect", "so_far", "contradictions", "nearest")
    return {name: told[name] for name in names} | {"findings": findings}

"""`GuardedAnswer`: an answer that is released sentence by sentence while it is written.

A state machine without input, output, threads and clocks. The driver feeds it events (`begin`, `write`,
`end`) and asks for what is due (`next`): text to release at once, or a sentence that must be judged first.
The driver judges the sentence in a thread of its choice, records the decision, and releases it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.registry import Checked, run_checks
from lrp4rag.guard.policy.assessment import (
    Assessment,
    assess,
    assess_passages,
    assess_unjudged,
    record_finding,
    without_words,
)
from lrp4rag.guard.policy.decision import Decided, by_checks, of_sentence, strictest, unjudged
from lrp4rag.guard.policy.policy import WITHHELD, Action, Policy, corrected
from lrp4rag.guard.policy.reasons import CHECK_OF, IN_STREAMS, Reason, row_of
from lrp4rag.report.generation import record_piece
from lrp4rag.source import Source
from lrp4rag.streaming import JudgedPiece, StreamingDetector, verdict_of
from lrp4rag.util.sentences import Piece

_STRUCTURE = re.compile(r"[\s`~|:*_=>+#-]*")
"""Text that says nothing: lines of a table's head, fences and rules."""
_ITEM = re.compile(r"[\s>]*(?:[-*+•‣◦▪]|\d{1,3}[.)])\s+")
_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})")


def says_nothing(piece: Piece) -> bool:
    """Say whether a piece is white space, or marks of Markdown only."""
    return _STRUCTURE.fullmatch(piece.text) is not None


def in_place(piece: Piece, notice: str) -> str:
    """Return a notice, which may be empty, with the Markdown of the piece: the fence that it opens, the row
    or the item that it is, and the white space after it."""
    text = piece.text
    fence = _FENCE.match(text) if piece.kind == "code" else None
    opened = f"{fence[0]}\n" if fence else ""
    if not notice:
        return opened
    gap = text[len(text.rstrip()) :] or " "
    if piece.kind == "table row":
        return f"| {notice} {'|' * max(1, text.count('|') - 1)}{gap}"
    item = _ITEM.match(text)
    return f"{opened or (item[0] if item else '')}{notice}{gap}"


def marked(piece: Piece, mark: str) -> str:
    """Return the piece with a mark at its end: in the last cell of a row, and none after a fence."""
    body = piece.text.rstrip()
    gap = piece.text[len(body) :]
    if piece.kind == "code" and _FENCE.match(body):
        return piece.text
    if piece.kind == "table row" and len(body) > 1 and body.endswith("|"):
        return f"{body[:-1].rstrip()}{mark} |{gap}"
    return f"{body}{mark}{gap}"


class Pending(NamedTuple):
    """A sentence that has ended and is not judged yet; `followed`: a line with a claim comes after it."""

    piece: Piece
    followed: bool


@dataclass(frozen=True, slots=True)
class DecidedSentence:
    """A sentence with the decision on it; without `judged`, it could not be judged."""

    piece: Piece
    decided: Decided
    judged: JudgedPiece | None = None
    checked: Checked = field(default_factory=lambda: Checked({}, {}, {}))

    def record(self) -> dict[str, Any]:
        """Return verdict and findings as JSON values, passages from 1; empty where it was not judged. The
        record of a withheld sentence quotes nothing."""
        if self.judged is None:
            return {}
        record = record_piece(self.judged)
        findings = [record_finding(finding) for finding in self.checked.every]
        if self.decided.action in WITHHELD:
            record["contradictions"] = [{**value, "text": None} for value in record["contradictions"]]
            record["nearest"] = record["nearest"] and {**record["nearest"], "words": []}
            findings = [without_words(finding) for finding in findings]
        verdict = ("start", "end", "status", "probability", "suspect", "so_far")
        evidence = ("contradictions", "nearest", "read")
        return {name: record[name] for name in (*verdict, *evidence)} | {"findings": findings}


class GuardedAnswer:
    """One answer to a question from its passages. Nothing leaves before it is judged and decided on.

    `unfit` is set from the start where no answer can be judged, since no passage is fit to answer from, or
    there is none; if the policy withholds then, the answer is `over` before it begins. Else `begin` it with a
    reading of the prompt. A sentence that states nothing (a heading, "Okay.") waits for the next sentence
    that does, and is decided on with it. The answer is `over` once it has ended, or the policy has `stopped`
    it."""

    def __init__(self, policy: Policy, question: str, sources: Sequence[Source]) -> None:
        """Run the retrieval gate; it takes up to the policy's budget."""
        self.policy, self.question, self.sources = policy, question, tuple(sources)
        self.text = ""
        self.judged: list[JudgedPiece] = []
        """The sentences that could be judged, in the order of the answer."""
        self.actions: Counter[Action] = Counter()
        """The numbers of released sentences, by action."""
        self.missed = False
        """Whether a sentence could not be judged."""
        self.shown = ""
        """The released text."""
        self._reading: StreamingDetector | None = None
        self._due: deque[Pending] = deque()
        self._pending: Pending | None = None
        self._notice = ""
        self._memory: dict[tuple[str, int], Any] = {}
        names = {CHECK_OF[kind] for kind in IN_STREAMS}
        self._checks = {name: check for name, check in policy.enabled_checks.items() if name in names}
        self.unfit = assess_passages(policy, question, self.sources)
        if self.unfit is None and not any(source.read.strip() for source in self.sources):
            self.unfit = assess_unjudged(policy, question, self.sources)
        self.over = self.stopped = self.unfit is not None and self.unfit.withheld

    def begin(self, reading: StreamingDetector) -> None:
        """Take the reading of the prompt, by which all sentences are judged."""
        self._reading = reading

    def write(self, text: str) -> None:
        """Take more of the answer's text; text after the answer is over is dropped."""
        if not self.over:
            self.text += text
            if self._reading is not None:
                self._due.extend(Pending(*sentence) for sentence in self._reading.ready(text))

    def end(self) -> None:
        """End the text: no more comes."""
        if not self.over and self._reading is not None:
            self._due.extend(Pending(*sentence) for sentence in self._reading.ready(None))

    def next(self) -> str | Pending | None:
        """Return what is due: text that says nothing, such as white space; or a sentence, again and again
        until it is released. None until more text comes, and once the answer is stopped."""
        if self._pending is not None:
            return self._pending
        if self.over or not self._due:
            return None
        pending = self._due.popleft()
        if says_nothing(pending.piece):
            return self._leave(pending.piece.text)
        self._pending = pending
        return pending

    def decide(self, pending: Pending) -> DecidedSentence:
        """Judge a sentence, and decide as on an answer that ends with it, also by the checks of sentences.
        The state does not change. Raises what judging raises."""
        assert self._reading is not None
        piece, followed = pending
        judged = self._reading.judge(piece, followed=followed)
        inputs = CheckInput(self.question, self.sources, piece.text, memory=self._memory)
        checked = run_checks(self._checks, inputs, budget=self.policy.budget)
        decided = strictest([self._by_status(judged), *by_checks(self.policy, checked, *IN_STREAMS)])
        return DecidedSentence(piece, decided, judged, checked)

    def unavailable(self, pending: Pending) -> DecidedSentence:
        """Return the decision on a sentence that could not be judged."""
        return DecidedSentence(pending.piece, unjudged(self.policy))

    def _by_status(self, judged: JudgedPiece) -> Decided:
        """Decide by a sentence's status, and by how many sentences so far are suspect; a supported sentence
        is served."""
        if judged.abstained:
            return unjudged(self.policy, abstained=True)
        if not judged.suspect:
            reason: Reason = "grounded" if judged.status == "supported" else "states nothing"
            return Decided("serve", reason, "verdict")
        counts = Counter(sentence.status for sentence in (*self.judged, judged))
        return of_sentence(self.policy, judged.status, counts)

    def release(self, sentence: DecidedSentence) -> str:
        """Return the sentence with its mark, or a notice in its place, which the next sentence does not
        repeat. Raises `ValueError` for a sentence that is not due."""
        if self._pending is None or sentence.piece is not self._pending.piece:
            raise ValueError("this sentence is not due")
        self._pending = None
        if sentence.judged is None:
            self.missed = True
        else:
            self.judged.append(sentence.judged)
        self.actions[sentence.decided.action] += 1
        most = self.policy.sentences.stop_after
        if most is not None and sum(self.actions[action] for action in WITHHELD) >= most:
            self.over = self.stopped = True
        return self._leave(self._shown(sentence))

    def _shown(self, sentence: DecidedSentence) -> str:
        piece, decided, texts = sentence.piece, sentence.decided, self.policy.texts
        before, self._notice = self._notice, ""
        if decided.action == "serve":
            return piece.text
        spans = sentence.judged.spans if sentence.judged else ()
        contradictions = (contradiction for span in spans for contradiction in span.contradictions)
        contradiction = next(contradictions, None)
        if decided.action not in WITHHELD:
            mark = corrected(texts.correction, contradiction) if contradiction else texts.mark
            return marked(piece, mark)
        name = row_of(decided.reason).notice
        if name == "notice" and contradiction:
            self._notice = corrected(texts.contradicted_notice, contradiction)
        else:
            self._notice = getattr(texts, name)
        return in_place(piece, "" if self._notice == before else self._notice)

    def _leave(self, text: str) -> str:
        self.shown += text
        return text

    @property
    def abstained(self) -> bool:
        """Say whether a sentence is unlike the training data."""
        return any(sentence.abstained for sentence in self.judged)

    def assess(self, threshold: float | None) -> Assessment:
        """Decide on the whole answer by its judged sentences; it is hallucinated from a probability of
        `threshold` on. Raises `InputError` for an answer that was not begun."""
        assert self._reading is not None
        verdict = None if self.missed else verdict_of(self.judged, threshold)
        return assess(self.policy, self._reading.example.with_response(self.text), verdict)

    def assess_unjudged(self) -> Assessment:
        """Decide on an answer without a verdict."""
        return self.unfit or assess_unjudged(self.policy, self.question, self.sources)

    def conclude(self, assessment: Assessment) -> str:
        """End the answer with the decision on the whole, and return its last text."""
        self.over = True
        wrote = bool(self.shown.strip())
        if self.unfit is not None:
            last = assessment.shown(self.text)
        else:
            last = assessment.below if wrote else assessment.message
        return self._leave(f"\n\n{last}" if last and wrote else last)

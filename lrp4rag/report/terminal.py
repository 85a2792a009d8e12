"""Reports for a terminal. User text goes through `visible` and `Text`: never markup, never control codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.classifiers.verdict import Sentence, Verdict
from lrp4rag.report.decision import Decision, decision_lines
from lrp4rag.report.words import (
    cautions,
    contradiction_words,
    difference_words,
    figure_words,
    main_reasons,
    prevalence_words,
    rests_on,
    time_words,
    token_words,
    uncalibrated_words,
    verdict_words,
)
from lrp4rag.util.text import one_line, visible

SUSPECT = "bold magenta underline"
BAR_WIDTH = 20


def render(analysis: Analysis, *, decision: Decision | None = None) -> RenderableType:
    """Render verdict, response with suspect spans, sentences with what they rest on, what a policy does with
    it, and where time went; and the prevalence that the probability is for, where it is not that of training.

    Where the console has no colour, suspect spans stand between ⟦ and ⟧.
    """
    blocks: list[RenderableType] = [_Adaptive(lambda console, options: _headline(analysis, options))]
    if analysis.prevalence is not None:
        blocks.append(Text(prevalence_words(analysis.prevalence), style="dim"))
    blocks += [Text(line, style="yellow") for line in cautions(analysis)]
    blocks += [Text(""), _Adaptive(lambda console, options: _response(analysis, console, options)), Text("")]
    if analysis.spans:
        blocks.append(_spans(analysis))
        if figures := figure_words(analysis):
            blocks.append(Text(figures, style="dim"))
        blocks.append(Text(""))
    if analysis.sentences:
        blocks.append(_sentences(analysis))
    if reasons := main_reasons(analysis, analysis.example.generator):
        blocks += _titled("main reasons", map(Text, reasons))
    if decision is not None:
        blocks += _titled("what the policy does", decision_lines(decision))
    blocks.append(Text(""))
    lengths = token_words(analysis.encoded, analysis.excerpt)
    blocks.append(Text(f"{lengths}; {time_words(analysis.seconds)}", style="dim"))
    return Group(*blocks)


def _titled(title: str, lines: Iterable[Text]) -> list[RenderableType]:
    return [Text(""), Text(title, style="dim"), *(Padding(line, (0, 0, 0, 2)) for line in lines)]


def render_line(analysis: Analysis) -> Text:
    """Render one example of many: id, probability, verdict, and what is most suspect: a contradicted value,
    or else another difference from the passages, or else the likeliest sentence to be hallucinated (the one
    with the lowest relevance, of a detector without tokens). Terminals cut the line, pipes have all of it."""
    word, style = _outcome(analysis)
    probability = "   -" if analysis.probability is None else f"{analysis.probability:4.2f}"
    line = Text()
    line.append(one_line(analysis.example.id).ljust(24), style="bold")
    line.append(f"  {probability}  ")
    line.append(word.ljust(12), style=style)
    contradicted = [span for span in analysis.spans if span.contradictions]
    if contradicted:
        line.append(f"  {'; '.join(contradiction_words(contradicted[0]))}")
    elif analysis.differences:
        line.append(f"  {difference_words(analysis.differences[0])}")
    elif analysis.sentences:
        most = max(analysis.sentences, key=_suspicion_of)
        relevance = most.relevance if most.probability is None else None
        line.append("  " if relevance is None else f"  {relevance:+.2f} ", style="dim")
        line.append(one_line(most.text))
    return line


def _suspicion_of(sentence: Sentence) -> float:
    if sentence.status == "states nothing":
        return -math.inf
    return -(sentence.relevance or 0.0) if sentence.probability is None else sentence.probability


@dataclass(slots=True)
class Tally:
    """Examples counted one after the other; `add` takes records of `lrp4rag.report.record`. Ones without a
    verdict (failures) only count."""

    examples: int = 0
    flagged: int = 0
    abstained: int = 0
    judged: int = 0
    generated: int = 0
    probabilities: float = 0.0
    slowest: tuple[float, str] | None = None
    threshold: float | None = None
    prevalence: float | None = None
    calibrated: bool = True

    def add(self, row: dict[str, Any]) -> None:
        self.examples += 1
        self.flagged += bool(row.get("hallucinated"))
        self.abstained += bool(row.get("abstained"))
        self.generated += bool(row.get("generated"))
        if row.get("probability") is not None:
            self.judged += 1
            self.probabilities += row["probability"]
        if row.get("seconds"):
            spent = sum(row["seconds"].values())
            if self.slowest is None or spent > self.slowest[0]:
                self.slowest = spent, str(row.get("id", "?"))
        if self.threshold is None:
            self.threshold = row.get("threshold")
        if self.prevalence is None:
            self.prevalence = row.get("prevalence")
        self.calibrated &= row.get("calibrated", True)


def render_summary(tally: Tally) -> Text:
    """Render how many examples are flagged from which threshold on, their mean probability, which took
    longest, and the prevalence."""
    text = Text(f"{tally.examples} {'example' if tally.examples == 1 else 'examples'}")
    if tally.judged:
        text.append(f", {tally.flagged} flagged", style="bold red" if tally.flagged else "bold green")
        if tally.abstained:
            text.append(f", {tally.abstained} without a verdict", style="yellow")
        text.append(f", mean probability {tally.probabilities / tally.judged:.2f}")
        if tally.threshold is not None:
            text.append(f" (threshold {tally.threshold:.2f})")
    if tally.slowest is not None:
        spent, slowest = tally.slowest
        text.append(f", slowest {one_line(slowest, 40)} ({spent:.1f} s)")
    if tally.prevalence is not None:
        text.append(f"\n{prevalence_words(tally.prevalence)}", style="dim")
    if tally.generated:
        were = "response was" if tally.generated == 1 else "responses were"
        text.append(f"\n{tally.generated} {were} not given, and written by the reader", style="yellow")
    if not tally.calibrated:
        text.append(f"\n{uncalibrated_words()}", style="yellow")
    return text


class _Adaptive:
    """Renders according to the console: with colour or without, in Unicode or in ASCII."""

    def __init__(self, build: Callable[[Console, ConsoleOptions], Text]) -> None:
        self._build = build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._build(console, options)


def _headline(verdict: Verdict, options: ConsoleOptions) -> Text:
    line = Text(verdict_words(verdict), style=_outcome(verdict)[1])
    if verdict.probability is not None:
        full, empty = ("#", "-") if options.ascii_only else ("█", "░")
        filled = round(min(max(verdict.probability, 0.0), 1.0) * BAR_WIDTH)
        line.append(f"\n{full * filled}{empty * (BAR_WIDTH - filled)}")
    if verdict.threshold is not None:
        line.append(f"  threshold {verdict.threshold:.2f}", style="not bold dim default")
    return line


def _response(analysis: Analysis, console: Console, options: ConsoleOptions) -> Text:
    response = analysis.encoded.response
    marks = ("", "")
    if console.no_color or console.color_system is None:
        marks = ("[[", "]]") if options.ascii_only else ("⟦", "⟧")
    text, cursor = Text(), 0
    for span in analysis.spans:
        text.append(visible(response[cursor : span.start]))
        text.append(f"{marks[0]}{visible(span.text)}{marks[1]}", style=SUSPECT)
        cursor = span.end
    text.append(visible(response[cursor:]))
    return text


def _spans(analysis: Analysis) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("suspect span", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("in the passages", ratio=1, overflow="fold")
    for span in analysis.spans:
        instead = "\n".join([span.kind, *contradiction_words(span)])
        table.add_row(Text(one_line(span.text)), Text(instead))
    return table


def _sentences(analysis: Analysis) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("sentence", ratio=1, no_wrap=True, overflow="ellipsis")
    judged = any(sentence.probability is not None for sentence in analysis.sentences)
    sentences = analysis.sentences
    attributed = any(sentence.relevance is not None for sentence in sentences)
    if attributed:
        table.add_column("relevance", justify="right", no_wrap=True)
        table.add_column("main source", no_wrap=True)
    table.add_column("P(hallucinated)" if judged else "", no_wrap=True)
    table.add_column("", no_wrap=True)
    for k, sentence in enumerate(sentences, 1):
        sources = []
        if attributed:
            number = "" if sentence.relevance is None else f"{sentence.relevance:+.2f}"
            sources = [Text(number), Text("" if sentence.relevance is None else rests_on(sentence))]
        table.add_row(Text(str(k)), Text(one_line(sentence.text)), *sources, *_suspicion(sentence))
    return table


def _suspicion(sentence: Sentence) -> tuple[Text, Text]:
    """Return a sentence's probability, on the scale of the verdict's threshold, and its status."""
    stating = sentence.probability is not None and sentence.status != "states nothing"
    number = Text(f"{sentence.probability:.2f}" if stating else "")
    return number, Text(sentence.status, style=SUSPECT if sentence.suspect else "")


def _outcome(verdict: Verdict) -> tuple[str, str]:
    """Return the verdict in a word, and its style."""
    if verdict.hallucinated is None:
        return "evidence" if verdict.threshold is None else "no verdict", "bold"
    return ("hallucinated", "bold red") if verdict.hallucinated else ("grounded", "bold green")

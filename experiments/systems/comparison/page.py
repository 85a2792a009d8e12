"""The page of a comparison: Markdown, a table of every metric and a figure, with no number typed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.figures.cost import draw_systems
from experiments.figures.style import save, save_table
from experiments.published import SOURCE, TABLE_2
from experiments.results_page import Results, claim_page, write_record
from experiments.systems.comparison.compare import (
    KIND,
    PROTOCOL,
    Comparison,
    Costs,
    Part,
    Plan,
    Quality,
)
from experiments.systems.comparison.folds import SEED
from experiments.systems.comparison.ours import DETECTOR, OF_SAMPLE
from experiments.systems.resources import Resources
from experiments.tokens.extraction import SIGNALS
from lrp4rag.classifiers.card import Interval, package_versions
from lrp4rag.reader.weights import label_of
from lrp4rag.report.markdown import Markdown, strong, text
from lrp4rag.report.numbers import difference, percent, verdict
from lrp4rag.training.localisation import ALL
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

ANSWERED = 0.5
"""Of the responses a system must have a usable reply for this part, or nothing is said of it."""
TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
DECISIONS = ("accuracy", "precision", "recall", "f1")
METRICS = ("auprc", "balanced_accuracy", "accuracy", "precision", "recall", "f1", "ece")


class PublishedFigure(NamedTuple):
    system: str
    figure: str
    source: str


LETTUCE = "arXiv 2502.17125"
_CITED = f"RAGTruth, as cited in {LETTUCE}"
_ALL_TASKS = "on RAGTruth, all tasks (test)"
_TABLE_2 = "accuracy {0.accuracy:.4f}, F1 {0.f1:.4f} ({0.generator}, RAGTruth QA, folds not grouped)"
PUBLISHED = (
    *(
        PublishedFigure(one.classifier, _TABLE_2.format(one), f"{SOURCE}, Table 2")
        for one in TABLE_2
        if one.kind == "baseline"
    ),
    PublishedFigure("LettuceDetect-base, ModernBERT (149M)", "span F1 0.615 on RAGTruth QA (test)", LETTUCE),
    PublishedFigure("LettuceDetect-large, ModernBERT (395M)", "span F1 0.644 on RAGTruth QA (test)", LETTUCE),
    PublishedFigure("LettuceDetect-large, ModernBERT (395M)", f"response F1 0.792 {_ALL_TASKS}", LETTUCE),
    PublishedFigure("fine-tuned llama-2-13b", f"response F1 0.787 {_ALL_TASKS}", _CITED),
    PublishedFigure("prompt gpt-4", f"response F1 0.634 {_ALL_TASKS}", _CITED),
)
"""Rows of LRP4RAG's Table 2 that are not its own, and of the systems' own papers."""


def write_page(
    found: Comparison,
    rows: Rows,
    out: Path,
    command: str,
    plan: Plan,
    costs: Costs | None,
    versions: Mapping[str, dict[str, str]],
) -> list[Path]:
    """README.md, metrics.csv, results.json and, where costs are known, the figure. `versions` are those of
    the packages that made each system's scores.

    Raises `InputError` where the folder has a page that this did not write.
    """
    claim_page(out, KIND)
    if costs is not None and DETECTOR in costs.systems:  # what it learned from changes nothing
        costs = replace(costs, systems=costs.systems | {OF_SAMPLE: costs.systems[DETECTOR]})
    if costs is not None and not costs.systems.keys() & found.facts.keys():
        raise InputError("the costs are of none of these systems; measure them (benchmarks.systems)")
    reader = rows.store.configuration.reader["name"]
    write_record(
        out,
        KIND,
        found,
        command=command,
        protocol=PROTOCOL.words,
        resamples=plan.resamples,
        sample_seed=SEED,
        rows=rows.digest,
        reader=reader,
        asks_another=label_of(plan.choices.reader) != reader,
        choices=Resources(choices=plan.choices).settings,
        versions=package_versions(),
        scores=versions,
        costs=costs,
    )
    return render(out)


def render(out: Path) -> list[Path]:
    """README.md, metrics.csv and, where costs are known, the figure of the results.json that is there, which
    stands last.

    Raises `InputError` where that is not what a comparison writes.
    """
    results = Results.of(out)
    every = results.found(Comparison)
    costs: Costs | None = results.get("costs", Costs | None, None)
    view = View.of(every)
    found, claims = view.found, view.claims
    files = [save_table(metrics_table(every), out / "metrics.csv")]
    if costs is not None:
        forwards = {name: one.forwards for name, one in costs.systems.items()}
        aurocs = {name: _aurocs(found.sample[name]) for name in claims}
        files += save(draw_systems(aurocs, forwards, view.ours), out / "cost")
    others = [name for name in found.facts if name not in view.ours]
    of_sample = _of_sample(view)
    page = results.write_page(
        TEMPLATE,
        {"own": partial(_own, view), "ranked": _ranked, "silent": _silent},
        found=found,
        facts=every.facts,
        learned=every.learned,
        systems=len(others),
        slow=sum(name not in found.every[ALL].systems for name in others),
        rows=found.every[ALL].rows,
        generators=[name for name in found.every if name != ALL],
        reader=results.get("reader", str),
        asks_another=results.get("asks_another", bool),
        protocol=results.get("protocol", str),
        resamples=results.get("resamples", int),
        seed=results.get("sample_seed", int),
        glance=_at_a_glance(found, claims),
        of_sample=view.of_sample,
        ours=view.ours,
        detector=view.detector,
        relevance=SIGNALS in found.facts[view.detector].needs,
        metrics=METRICS,
        claims=claims,
        verdicts={name: {where: _verdict(view, name, where) for where in claims} for name in others},
        added={name: {where: _added(found, name, where) for where in claims} for name in others},
        unbeaten=[
            _unbeaten(view, name, where)
            for name in others
            for where in claims
            if not _beaten(view, name, where) and not _mute(view, name, where)
        ],
        mute={name: where for name in others if (where := [one for one in claims if _mute(view, name, one)])},
        answered=ANSWERED,
        unbeaten_of_sample=[sentence for sentence, ahead in of_sample if not ahead],
        ahead_of_sample=sum(ahead for _, ahead in of_sample),
        costs=costs,
        unmeasured=[name for name in others if costs is not None and name not in costs.systems],
        twins=view.twins,
        published=PUBLISHED,
        choices=results.get("choices", dict[str, Any]),
    )
    return [page, *files, results.path]


@dataclass(frozen=True, slots=True)
class View:
    """A comparison in which every system stands once: `twins` has each that was left out and the one that it
    is. `ours` are the detectors of this project, `detector` the first of them and `of_sample` the one that
    judged the sample only; `claims` are the generators of the sample."""

    found: Comparison
    twins: dict[str, str]
    ours: tuple[str, ...]
    detector: str
    of_sample: str | None
    claims: list[str]

    @classmethod
    def of(cls, every: Comparison) -> View:
        ours = tuple(name for name, one in every.facts.items() if one.ours)
        twins = _twins(every, ours)
        found = _without(every, twins)
        few = [name for name in ours if name not in found.every[ALL].systems]
        claims = [name for name in found.sample if name != ALL] or [ALL]
        return cls(found, twins, ours, ours[0], few[0] if few else None, claims)


def metrics_table(found: Comparison) -> pd.DataFrame:
    """Every metric with its interval, a row for each system, generator and set of rows."""
    import pandas as pd

    lines = []
    for rows, parts in (("all", found.every), ("sample", found.sample)):
        for generator, part in parts.items():
            for name, one in part.systems.items():
                for metric, interval in _metrics(one).items():
                    lines.append(
                        {"rows": rows, "generator": generator, "system": name, "metric": metric}
                        | {"value": interval.value, "low": interval.low, "high": interval.high}
                    )
    return pd.DataFrame(lines)


def _metrics(one: Quality) -> dict[str, Interval]:
    found = dict(one.metrics) | {f"behind: {name}": value for name, value in one.behind.items()}
    if one.behind_sample is not None:
        found |= {f"behind, of the sample: {name}": value for name, value in one.behind_sample.items()}
    if one.by_marks is not None:
        found |= {f"by marks: {name}": one.by_marks[name] for name in DECISIONS}
    for kind in ("token", "span", "sentence") if one.line is not None else ():
        found |= {f"{kind} {name}": value for name, value in getattr(one.line, f"{kind}s").items()}
    return found


def _quality(found: Comparison, name: str, generator: str) -> Quality:
    """On all rows where the system judged all."""
    parts = found.every if name in found.every[ALL].systems else found.sample
    return parts[generator].systems[name]


def _behind(view: View, name: str, generator: str) -> Interval:
    """By how much a system's AUROC is behind ours, behind ours that learned from as few where it is slow."""
    one = _quality(view.found, name, generator)
    slow = name not in view.found.every[ALL].systems
    return (one.behind_sample if slow and one.behind_sample is not None else one.behind)["auroc"]


def _beaten(view: View, name: str, generator: str) -> bool:
    return verdict(_behind(view, name, generator)) == "holds"


def _twins(found: Comparison, ours: Sequence[str]) -> dict[str, str]:
    """Systems that are another one under a second name: every figure of theirs is the same."""
    systems, twins = found.sample[ALL].systems, {}
    for first, second in combinations(sorted(systems.keys() - set(ours)), 2):
        if systems[first] == systems[second] and first not in twins:
            twins[second] = first
    return twins


def _without(found: Comparison, names: Mapping[str, str]) -> Comparison:
    def parts(given: Mapping[str, Part]) -> dict[str, Part]:
        return {
            generator: replace(part, systems={n: one for n, one in part.systems.items() if n not in names})
            for generator, part in given.items()
        }

    facts = {name: one for name, one in found.facts.items() if name not in names}
    return replace(found, facts=facts, every=parts(found.every), sample=parts(found.sample))


def _mute(view: View, name: str, generator: str) -> bool:
    """Without a usable reply for most responses: what it would have said is not known."""
    return _quality(view.found, name, generator).answered < ANSWERED


def _verdict(view: View, name: str, generator: str) -> str:
    behind = _behind(view, name, generator)
    if _mute(view, name, generator):
        silent = 1 - _quality(view.found, name, generator).answered
        return f"no verdict, {percent(silent)} unanswered, {difference(behind)}"
    return f"{'yes' if _beaten(view, name, generator) else 'no'}, {difference(behind)}"


def _added(found: Comparison, name: str, generator: str) -> str:
    """By what a system combined with ours beats ours, where that is known."""
    if found.stack is None or name not in found.stack.each:
        return ""
    return difference(found.stack.each[name][generator]["auroc"])


def _unbeaten(view: View, name: str, where: str) -> Markdown:
    """By how much it is not, in one place and over all rows that the system judged, and what it adds."""
    found = view.found
    one, every = (_behind(view, name, place) for place in (where, ALL))
    parts = found.every if name in found.every[ALL].systems else found.sample
    whose = "ours"
    if name not in found.every[ALL].systems and view.of_sample is not None:
        whose = view.of_sample
    sentence = f"on {where}: {difference(one)} behind {whose}"
    if where != ALL:
        sentence += f", and {difference(every)} on all {parts[ALL].rows} responses that it judged"
        sentence += ": one generator's are too few to tell" if verdict(every) == "holds" else ""
    sentence += "."
    if found.stack is not None and name in found.stack.each:
        added = found.stack.each[name][where]["auroc"]
        more = (
            "knows what ours does not" if verdict(added) == "holds" else "is not shown to know more than ours"
        )
        sentence += f" Combined with ours it adds {difference(added)}: it {more}."
    return Markdown(f"{strong(name)} {text(sentence)}")


def _of_sample(view: View) -> list[tuple[str, bool]]:
    """Slow systems on each generator, and whether ours is ahead where it learned from as few responses."""
    found, lines = view.found, []
    for name in sorted(found.facts.keys() - found.every[ALL].systems.keys() - set(view.ours)):
        for where in (one for one in view.claims if not _mute(view, name, one)):
            behind = found.sample[where].systems[name].behind_sample
            if behind is not None:
                one = behind["auroc"]
                lines.append((f"{name} on {where} ({difference(one)})", verdict(one) == "holds"))
    return lines


def _aurocs(part: Part) -> dict[str, Interval]:
    return {name: one.metrics["auroc"] for name, one in part.systems.items()}


def _ranked(systems: Mapping[str, Quality]) -> list[str]:
    """Names, the highest AUROC first."""
    return sorted(systems, key=lambda name: -(systems[name].metrics["auroc"].value or 0.0))


def _at_a_glance(found: Comparison, claims: Sequence[str]) -> list[str]:
    """Names, those that judged all rows first, each kind by its mean AUROC."""

    def place(name: str) -> tuple[bool, float]:
        values = [_quality(found, name, where).metrics["auroc"].value or 0.0 for where in claims]
        return name not in found.every[ALL].systems, -fmean(values)

    return sorted(found.facts, key=place)


def _own(view: View, name: str) -> Markdown:
    return strong(name) if name in view.ours else text(name)


def _silent(systems: Mapping[str, Quality]) -> dict[str, str]:
    """What had no usable reply: a part of the questions, where any were asked of each response, and of the
    responses none at all."""
    return {
        name: (f"{percent(one.unreadable)} of the questions, " if one.unreadable else "")
        + f"{percent(1 - one.answered)} of the responses"
        for name, one in systems.items()
        if one.answered < 1 or one.unreadable
    }

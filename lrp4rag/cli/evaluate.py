"""`lrp4rag evaluate`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.config import CONFIG
from lrp4rag.cli.engine import EngineChoice, engine_options
from lrp4rag.cli.extract import extraction_of
from lrp4rag.cli.inputs import data_files, load_data
from lrp4rag.cli.options import (
    BOOTSTRAP,
    GENERATOR,
    PATH,
    PLACE,
    STORE_HELP,
    DetectorChoice,
    Number,
    ReaderChoice,
    check_written,
    detector_options,
    file_option,
    hidden,
    reader_options,
    repeatable,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.example import Example
    from lrp4rag.guard.evaluation.evaluate import Evaluation
    from lrp4rag.guard.evaluation.regression_gate import Gate as Comparison
    from lrp4rag.guard.evaluation.saved import Saved

WORSE = 4
"""The exit code where the gate fails."""
MAX_DROP = 0.05


@command()
@click.argument("data", metavar="DATA")
@detector_options()
@click.option(
    "--policy", "policy_path", type=PATH, help="YAML file of the policy.  [default: the built-in one]"
)
@file_option("--out", help="Write the results as JSON, each example's too: a baseline for later.")
@file_option("--baseline", help="Compare with the results that an earlier --out wrote.")
@click.option(
    "--max-drop",
    type=Number(0, 1),
    metavar="DROP",
    help="The gate fails where a measure is worse than in the baseline by more than this, and the 95 % "
    f"interval of the difference excludes 0.  [default: {MAX_DROP:g}]",
)
@hidden(
    repeatable("--measure", "gated", help="Let only this measure fail the gate; repeatable."),
    click.option("--date", type=click.DateTime(["%Y-%m-%d"]), help="Decide as on this day."),
    GENERATOR,
    BOOTSTRAP,
)
@click.option("--store", type=PLACE, help=f"{STORE_HELP}  [default: a temporary folder]")
@click.option("--allow-seen", is_flag=True, help="Evaluate also on sources of the training data.")
@CONFIG
@engine_options(shown=("workers",))
@reader_options(shown=("max-memory",))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON what --out writes.")
@click.pass_context
def evaluate(
    ctx: click.Context,
    data: str,
    choice: DetectorChoice,
    policy_path: Path | None,
    out: Path | None,
    baseline: Path | None,
    max_drop: float | None,
    gated: tuple[str, ...],
    date: datetime | None,
    store: Path | None,
    generator: tuple[str, ...],
    allow_seen: bool,
    resamples: int,
    engine: EngineChoice,
    reader: ReaderChoice,
    as_json: bool,
) -> None:
    """Run a detector over labelled DATA and print its metrics per generator, with intervals, and what a
    policy does with the answers.

    For a token detector these include the metrics of tokens, spans and sentences, beside controls. DATA
    that shares sources with the detector's training data is refused, unless --allow-seen.

    With --baseline it is a gate for CI: the same examples (by id and texts) are compared in pairs, by a
    bootstrap over sources. A measure fails where it is worse by more than --max-drop and the 95 % interval
    of the difference excludes 0, so that chance does not block. It is "not ruled out" where the interval
    holds a larger drop: that is said, and passes. Exit codes: 0 the gate passes, 4 it fails, 2 bad input.

    \b
    Examples:
      lrp4rag evaluate golden.jsonl --out last.json
      lrp4rag evaluate golden.jsonl --out now.json --baseline last.json --max-drop 0.05
      lrp4rag evaluate golden.jsonl --policy strict.yaml --baseline last.json
    """
    gate = Gate(baseline, max_drop, gated)
    if out is not None:  # before the expensive part
        check_written(out, data_files(data))

    from lrp4rag.guard.evaluation.evaluate import evaluate as run
    from lrp4rag.guard.evaluation.measures import flagged_by_kind, measures_of
    from lrp4rag.guard.evaluation.report import evaluation_record, print_evaluation
    from lrp4rag.guard.evaluation.saved import made_with, written
    from lrp4rag.guard.policy import load_policy
    from lrp4rag.training.seen import refuse_seen
    from lrp4rag.training.train import labelled

    policy = load_policy(policy_path)
    gate.open()
    detector = choice.open()
    if detector is None:
        raise InputError("evaluate needs a detector")
    examples = labelled(load_data(data, generator), data)
    gate.require_comparable(examples)
    if not allow_seen:
        refuse_seen(detector.card, examples, data)
    date = None if date is None else date.replace(tzinfo=UTC)
    estimate = choice.estimates
    with engine.store_or_temporary(store) as folder:
        extraction = extraction_of(examples, folder, reader, detector.needs, engine, detector)
        evaluation = run(
            detector, examples, extraction, resamples=resamples, estimate=estimate, policy=policy, date=date
        )
    kinds = flagged_by_kind(examples, evaluation.results)
    measures = measures_of(evaluation.results, resamples=resamples)
    how = made_with(evaluation, detector.card, choice.detector_name, policy, date)
    record = evaluation_record(evaluation, detector.card, how, kinds, measures)
    failed = gate.compare(evaluation, how, record, resamples)
    if as_json:
        say_json(record)
    else:
        print_evaluation(evaluation, policy.name, kinds, measures)
    gate.show(stderr=as_json)
    if out is not None:
        write_atomically(out, written(record))
        say(f"wrote {out}", err=True)
    ctx.exit(WORSE if failed else 0)


class Gate:
    """The comparison with a baseline, where there is one. Raises `InputError` for options of a comparison
    without one."""

    def __init__(self, baseline: Path | None, max_drop: float | None, gated: Collection[str]) -> None:
        if baseline is None and (max_drop is not None or gated):
            raise InputError("--max-drop and --measure are for a comparison; add --baseline FILE")
        self._path, self._gated = baseline, gated
        self._max_drop = MAX_DROP if max_drop is None else max_drop
        self._saved: Saved | None = None
        self._comparison: Comparison | None = None

    def open(self) -> None:
        """Read the baseline. Raises `InputError` for what is none, and for an unknown measure."""
        from lrp4rag.guard.evaluation.regression_gate import require_gated
        from lrp4rag.guard.evaluation.saved import read_saved

        _ = require_gated(self._gated)
        self._saved = None if self._path is None else read_saved(self._path)

    def require_comparable(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` where no example is in the baseline."""
        from lrp4rag.guard.evaluation.regression_gate import require_comparable

        if self._saved is not None:
            require_comparable(examples, self._saved)

    def compare(
        self, evaluation: Evaluation, how: Mapping[str, Any], record: dict[str, Any], resamples: int
    ) -> bool:
        """Add the comparison to the record; returns whether a measure fails."""
        from lrp4rag.guard.evaluation.regression_gate import compare
        from lrp4rag.guard.evaluation.report import gate_record

        if self._saved is None or self._path is None:
            return False
        options: dict[str, Any] = {"gated": self._gated, "resamples": resamples}
        self._comparison = compare(evaluation.results, self._saved, how, max_drop=self._max_drop, **options)
        record["gate"] = gate_record(self._comparison, self._path.name)
        return bool(self._comparison.failed)

    def show(self, *, stderr: bool) -> None:
        """Print the comparison."""
        from lrp4rag.guard.evaluation.report import render_gate

        if self._comparison is not None and self._path is not None:
            open_console(stderr=stderr).print(render_gate(self._comparison, self._path.name))

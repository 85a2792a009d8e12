"""`lrp4rag evaluate`."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrp4rag import __version__
from lrp4rag.cli.command import command
from lrp4rag.cli.engine import EngineChoice, engine_options
from lrp4rag.cli.extract import warn_of_failures
from lrp4rag.cli.inputs import data_files, load_data
from lrp4rag.cli.options import (
    BOOTSTRAP,
    CONFIG,
    GENERATOR,
    NONE,
    PATH,
    DetectorChoice,
    Number,
    ReaderChoice,
    check_written,
    detector_options,
    file_option,
    hidden,
    open_detector,
    reader_options,
    repeatable,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.terminal import open_console, say, say_json

if TYPE_CHECKING:
    from lrp4rag.classifiers import Model
    from lrp4rag.guard.evaluation.unfinished import Unfinished

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
@click.option("--allow-seen", is_flag=True, help="Evaluate also on sources of the training data.")
@CONFIG
@engine_options(shown=("workers",))
@reader_options(shown=("max-memory",), dtype="auto")
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
    generator: tuple[str, ...],
    allow_seen: bool,
    resamples: int,
    engine: EngineChoice,
    reader: ReaderChoice,
    as_json: bool,
) -> None:
    """Judge labelled DATA as `analyse` does, and print metrics per generator, with intervals, which examples
    are missed, and what a policy does with the answers.

    DATA that shares sources with the detector's training data is refused, unless --allow-seen. With --out
    it is safe to interrupt: running it again judges only what is missing.

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
    if baseline is None and (max_drop is not None or gated):
        raise InputError("--max-drop and --measure are for a comparison; add --baseline FILE")
    if choice.estimates:
        engine.require_one_process("--prevalence estimate is")
    engine.require_possible(reader)
    if out is not None:  # before the expensive part
        check_written(out, data_files(data))

    from lrp4rag.guard.evaluation.evaluate import evaluate as run
    from lrp4rag.guard.evaluation.regression_gate import (
        compare,
        made_with,
        read_saved,
        require_comparable,
        require_gated,
        written,
    )
    from lrp4rag.guard.evaluation.report import (
        evaluation_record,
        gate_record,
        print_evaluation,
        render_gate,
    )
    from lrp4rag.guard.evaluation.result import flagged_by_kind, measures_of
    from lrp4rag.guard.evaluation.unfinished import Unfinished
    from lrp4rag.guard.policy import load_policy
    from lrp4rag.training.train import labelled, refuse_seen

    policy = load_policy(policy_path)
    names = require_gated(gated)
    saved = None if baseline is None else read_saved(baseline)
    choice, detector = _opened(choice, reader)
    examples = labelled(load_data(data, generator), data)
    if saved is not None:
        require_comparable(examples, saved)
    if not allow_seen:
        refuse_seen(detector.card, examples, data, detector.replacement)
    date = None if date is None else date.replace(tzinfo=UTC)
    day = (date or datetime.now(UTC)).date()
    how = [
        repr(choice),
        repr(reader),
        str(detector.card.sha256),
        "" if detector.replacement is None else detector.replacement.digest,
        policy.hash,
        str(day),
        __version__,
    ]
    unfinished = None if out is None or choice.estimates else Unfinished(out, how)
    with engine.mapping(reader) as map_groups:
        evaluation = run(
            detector,
            examples,
            partial(open_detector, choice.for_workers(), engine.of_worker(reader)),
            map_groups=map_groups,
            estimate=choice.estimates,
            resamples=resamples,
            policy=policy,
            date=date,
            unfinished=unfinished,
        )
    warn_of_failures(evaluation.failures)
    kinds = flagged_by_kind(examples, evaluation.results)
    measures = measures_of(evaluation.results, resamples=resamples)
    provenance = made_with(evaluation, detector.card, choice.detector_name, policy, date)
    record = evaluation_record(evaluation, detector.card, provenance, kinds, measures)
    gate = None
    if saved is not None and baseline is not None:
        most = MAX_DROP if max_drop is None else max_drop
        gate = compare(evaluation.results, saved, provenance, max_drop=most, gated=names, resamples=resamples)
        record["gate"] = gate_record(gate, baseline.name)
    if as_json:
        say_json(record)
    else:
        print_evaluation(evaluation, policy.name, kinds, measures)
    if gate is not None and baseline is not None:
        open_console(stderr=as_json).print(render_gate(gate, baseline.name))
    if out is not None:
        _write_results(out, written(record), unfinished)
    ctx.exit(WORSE if gate is not None and gate.failed else 0)


def _write_results(out: Path, text: str, unfinished: Unfinished | None) -> None:
    write_atomically(out, text)
    say(f"wrote {out}", err=True)
    if unfinished is not None:
        unfinished.done()


def _opened(choice: DetectorChoice, reader: ReaderChoice) -> tuple[DetectorChoice, Model]:
    """Load the detector that judges beside the reader, and say where it is another than the chosen one."""
    beside = choice.beside(reader)
    detector = beside.open(reader.device)
    if detector is None:
        raise InputError("evaluate needs a detector")
    if beside != choice and reader.reader_name != NONE:
        from lrp4rag.report.words import uncalibrated_words

        say(uncalibrated_words(), err=True)
    return beside, detector

"""`lrp4rag check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lrp4rag.cli.options import COMPOSITES, Number, model_options, open_reader
from lrp4rag.terminal import open_console

if TYPE_CHECKING:
    from rich.table import Table

    from lrp4rag.lrp.conservation import Conservation

SHOWN = 6


@click.command(short_help="Where a model's relevance is lost: a quick test of a reader.")
@model_options
@click.option(
    "--composite", "names", type=click.Choice(COMPOSITES), multiple=True, help="Repeatable.  [default: all]"
)
@click.option(
    "--tolerance",
    type=Number(0),
    help="What a part may lose under cp_lrp, over the largest relevance that enters one.  "
    "[default: 0.001 in float32, 0.02 in half precision]",
)
@click.pass_context
def check(
    ctx: click.Context,
    reader_name: str,
    device: str | None,
    dtype: str,
    names: tuple[str, ...],
    tolerance: float | None,
) -> None:
    """Follow a logit back through a model, and say where relevance is lost or made.

    Under cp_lrp nothing may be lost on a model without biases: if something is, the rules do not fit
    this model, and the exit code is 1. Under the other composites the table tells what their Jacobians
    cost.

    \b
    Examples:
      lrp4rag check
      lrp4rag check --reader Qwen/Qwen3-0.6B --composite cp_lrp
    """
    from lrp4rag.lrp.conservation import check_conservation

    reader = open_reader(reader_name, device, dtype, False, None)
    biased = any(
        name.endswith("bias") for name, _ in reader.model.named_parameters() if not name.startswith("lm_head")
    )
    if tolerance is None:
        tolerance = 1e-3 if reader.identity.dtype == "float32" else 2e-2
    console, failed = open_console(), False
    for name in names or COMPOSITES:
        report = check_conservation(reader.model, name)
        console.print(
            f"{report.composite}: {report.embeddings:.3f} of a logit of {report.logit:.3f} "
            f"arrives at the embeddings ({report.share:.3f})",
            style="bold",
        )
        console.print(_table(report))
        if name == "cp_lrp":
            failed = not biased and not report.conserves(tolerance)
            if failed:
                console.print("relevance is lost where none may be: the rules do not fit this model")
            elif biased:
                console.print("this model has biases, which are sources of their own")
            else:
                console.print(f"conserved to {tolerance:g} at every part")
        console.print()
    ctx.exit(1 if failed else 0)


def _table(report: Conservation) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("layer", "part", "entering", "leaving", "lost"):
        table.add_column(name, justify="left" if name == "part" else "right")
    for step in report.worst(SHOWN):
        numbers = (f"{value:.4f}" for value in (step.entering, step.leaving, step.lost + 0.0))
        table.add_row(str(step.layer), step.part, *numbers)
    return table

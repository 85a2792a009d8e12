"""`lrp4rag check`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import COMPOSITES, Number, ReaderChoice, gathered, model_options
from lrp4rag.util.terminal import open_console

if TYPE_CHECKING:
    from rich.table import Table

    from lrp4rag.lrp.conservation import Conservation

SHOWN = 6


@command()
@gathered(ReaderChoice, "reader", *model_options())
@click.option(
    "--composite", "names", type=click.Choice(COMPOSITES), multiple=True, help="Repeatable.  [default: all]"
)
@click.option(
    "--tolerance",
    type=Number(0),
    help="Most that a part may lose under cp_lrp, over the largest relevance that enters one.  "
    "[default: 0.001 in float32, 0.02 in half precision]",
)
@click.pass_context
def check(
    ctx: click.Context,
    reader: ReaderChoice,
    names: tuple[str, ...],
    tolerance: float | None,
) -> None:
    """Follow a logit back through a model, and show where relevance is lost or created.

    Under cp_lrp a model without biases loses none: if it does, the rules do not fit this model, and the
    exit code is 1. Under the other composites the table shows what their Jacobians lose.

    \b
    Examples:
      lrp4rag check
      lrp4rag check --reader Qwen/Qwen3-0.6B --composite cp_lrp
    """
    from lrp4rag.lrp.conservation import check_conservation

    opened = replace(reader, chat_template=False).open()
    biased = any(
        name.endswith("bias") for name, _ in opened.model.named_parameters() if not name.startswith("lm_head")
    )
    if tolerance is None:
        tolerance = 1e-3 if opened.identity.dtype == "float32" else 2e-2
    console, failed = open_console(), False
    for name in names or COMPOSITES:
        report = check_conservation(opened.model, name)
        console.print(
            f"{report.composite}: {report.embeddings:.3f} of a logit of {report.logit:.3f} "
            f"arrives at the embeddings ({report.share:.3f})",
            style="bold",
        )
        console.print(_table(report))
        if name == "cp_lrp":
            failed = not biased and not report.conserves(tolerance)
            if failed:
                console.print("relevance is lost: the rules do not fit this model")
            elif biased:
                console.print("this model has biases, which take up relevance themselves")
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

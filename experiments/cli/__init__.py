"""`python -m experiments`: the commands of the research that stands beside the product."""

from __future__ import annotations

import click

from experiments.cli.baseline import baseline
from experiments.cli.breakdown import breakdown
from experiments.cli.claims import claims
from experiments.cli.compare import compare
from experiments.cli.entailment import entailment
from experiments.cli.lettuce import lettuce
from experiments.cli.localise import localise
from experiments.cli.page import page
from experiments.cli.ragulator import ragulator
from experiments.cli.reproduce import reproduce
from experiments.cli.study import study
from experiments.cli.worth import worth
from lrp4rag.cli.group import CONTEXT, CommandGroup, prepare_output

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "The paper": (reproduce, claims),
    "Systems": (compare, breakdown, baseline, entailment, lettuce, ragulator),
    "Detectors": (study, worth, localise),
    "Pages": (page,),
}


class _Experiments(CommandGroup):
    program = ("python", "-m", "experiments")


@click.group(name="python -m experiments", cls=_Experiments, context_settings=CONTEXT)
def main() -> None:
    """Research beside the product: its tables and figures, each made from a store by one command."""
    prepare_output()


main.add_sections(SECTIONS)

"""`lrp4rag experiments`: the commands of the research that stands beside the product."""

from __future__ import annotations

import click

from lrp4rag.experiments.cli.baseline import baseline
from lrp4rag.experiments.cli.breakdown import breakdown
from lrp4rag.experiments.cli.claims import claims
from lrp4rag.experiments.cli.compare import compare
from lrp4rag.experiments.cli.entailment import entailment
from lrp4rag.experiments.cli.lettuce import lettuce
from lrp4rag.experiments.cli.localise import localise
from lrp4rag.experiments.cli.page import page
from lrp4rag.experiments.cli.ragulator import ragulator
from lrp4rag.experiments.cli.reproduce import reproduce
from lrp4rag.experiments.cli.study import study
from lrp4rag.experiments.cli.worth import worth


@click.group(short_help="The paper's evaluation, the comparison of systems, the study of detectors.")
def experiments() -> None:
    """Research beside the product: its tables and figures, each made from a store by one command."""


for command in (
    reproduce,
    claims,
    compare,
    breakdown,
    baseline,
    entailment,
    study,
    worth,
    localise,
    lettuce,
    ragulator,
    page,
):
    experiments.add_command(command)

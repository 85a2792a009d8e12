"""`python -m experiments`: the commands of the research that stands beside the product."""

from __future__ import annotations

import click

from lrp4rag.cli.group import CONTEXT, CommandGroup, LazyCommand, prepare_output

SECTIONS = {
    "The paper": {
        "reproduce": LazyCommand(
            "experiments.cli.reproduce",
            "Tables 1 to 5 and Figures 2 to 5 of the paper's evaluation, from a store.",
        ),
        "claims": LazyCommand(
            "experiments.cli.claims", "The paper's claims beside what was measured, from results."
        ),
    },
    "Systems": {
        "compare": LazyCommand(
            "experiments.cli.compare", "Compare every system with our detectors, from a store."
        ),
        "breakdown": LazyCommand(
            "experiments.cli.breakdown", "Where systems are good and fail, from stored scores."
        ),
        "baseline": LazyCommand(
            "experiments.cli.baseline", "Run one of the systems that people would compare with."
        ),
        "entailment": LazyCommand(
            "experiments.cli.entailment", "Train a small cross-encoder of entailment on labelled responses."
        ),
        "lettuce": LazyCommand(
            "experiments.cli.lettuce", "LettuceDetect's training, epoch by epoch, on one fold."
        ),
        "ragulator": LazyCommand(
            "experiments.cli.ragulator",
            "RAGulator's evaluation: sentences, held-out pairs, agreement, speed, a stream.",
        ),
    },
    "Stores": {
        "extract": LazyCommand(
            "experiments.cli.extract", "Compute the parts of a store that only the research reads."
        ),
    },
    "Detectors": {
        "study": LazyCommand(
            "experiments.cli.study", "What token detectors are worth, at what cost, from a store."
        ),
        "worth": LazyCommand(
            "experiments.cli.worth", "What relevance adds to likelihood, attention and hidden states."
        ),
        "localise": LazyCommand(
            "experiments.cli.localise",
            "How well hallucinated tokens, spans and sentences are found, from a store.",
        ),
    },
    "Pages": {
        "page": LazyCommand("experiments.cli.page", "Write pages of results again from their results.json."),
    },
}


@click.group(
    name="python -m experiments",
    cls=CommandGroup,
    sections=SECTIONS,
    program=("python", "-m", "experiments"),
    context_settings=CONTEXT,
)
def main() -> None:
    """Research beside the product: its tables and figures, each made from a store by one command."""
    prepare_output()

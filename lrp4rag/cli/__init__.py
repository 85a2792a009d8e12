"""The command line. Commands parse, call one function and print what it returned.

A command is imported once it is called, and nothing heavy at the top of its module: `--help` is instant.
"""

from __future__ import annotations

import click

from lrp4rag import __version__
from lrp4rag.cli.group import CONTEXT, CommandGroup, LazyCommand, prepare_output

SECTIONS = {
    "Use": {
        "analyse": LazyCommand("Verdict and evidence for one response, or for each response of a file."),
        "generate": LazyCommand("Let the reader answer, each token with its relevance."),
        "attribute": LazyCommand("Relevance itself: what each part of a response rests on in the prompt."),
    },
    "Train": {
        "train": LazyCommand("Train a detector on labelled responses."),
        "evaluate": LazyCommand("Metrics on labelled responses; a gate against an earlier run."),
        "calibrate": LazyCommand("Let a published model stand in for the comparer."),
        "extract": LazyCommand("Compute relevance of responses into a store."),
        "store": LazyCommand("Inspect, merge and export stores of what was extracted."),
        "data": LazyCommand("Fetch public labelled data, such as RAGTruth."),
        "corrupt": LazyCommand("Make copies of faithful responses with a fault in them."),
    },
    "Guard": {
        "route": LazyCommand("What a policy does with answers: serve, mark, escalate, withhold."),
        "policy": LazyCommand("Look at a policy, or check one.", module="lrp4rag.cli.route"),
        "redteam": LazyCommand(
            "Ask a guardrail about answers that it must stop, and harmless ones.", extra="serve"
        ),
        "serve": LazyCommand("A server that lets out judged answers only.", extra="serve"),
        "audit": LazyCommand("Verify and read the log of decisions, and erase texts from it.", extra="serve"),
        "review": LazyCommand(
            "Answers for people to look at: doubtful ones, and a sample of the others.", extra="serve"
        ),
        "drift": LazyCommand(
            "Compare two windows of the audit log: scores, decisions, sizes, retrieval.", extra="serve"
        ),
    },
    "Inspect": {
        "card": LazyCommand("What a detector was trained with and on, and how well it does."),
        "check": LazyCommand("Where a model's relevance is lost: a quick test of a reader."),
    },
}
FORMER = {"feedback": LazyCommand("audit export --labels", extra="serve", module="lrp4rag.cli.audit")}
"""Commands that work under an earlier name and are not listed."""


@click.group(
    name="lrp4rag",
    cls=CommandGroup,
    sections=SECTIONS,
    former=FORMER,
    context_settings=CONTEXT,
    epilog="Exit codes: 0 done, 1 failure, 2 bad usage or input, 3 hallucination (if asked) or drift found, "
    "4 worse than a baseline (on request).",
)
@click.version_option(__version__, package_name="lrp4rag")
def main() -> None:
    """Detect hallucinations in retrieval-augmented generation, white-box.

    lrp4rag replays a response through a language model (the reader), propagates relevance from the
    response's logits to the prompt's tokens, and says with evidence whether the response is grounded in
    the retrieved passages.

    \b
    Start with:
      lrp4rag analyse examples/hallucinated.json --html page.html
    """
    prepare_output()

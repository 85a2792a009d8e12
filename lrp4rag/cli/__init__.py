"""The command line. Commands parse, call one function and print what it returned.

Nothing heavy is imported here or at the top of the command modules, so `--help` is instant.
"""

from __future__ import annotations

import click

from lrp4rag import __version__
from lrp4rag.cli.analyse import analyse
from lrp4rag.cli.attribute import attribute
from lrp4rag.cli.audit import audit
from lrp4rag.cli.card import card
from lrp4rag.cli.check import check
from lrp4rag.cli.corrupt import corrupt
from lrp4rag.cli.drift import drift
from lrp4rag.cli.evaluate import evaluate
from lrp4rag.cli.extract import extract
from lrp4rag.cli.feedback import feedback
from lrp4rag.cli.generate import generate
from lrp4rag.cli.group import CONTEXT, CommandGroup, prepare_output
from lrp4rag.cli.redteam import redteam
from lrp4rag.cli.review import review
from lrp4rag.cli.route import policy_group, route
from lrp4rag.cli.serve import serve
from lrp4rag.cli.store import store
from lrp4rag.cli.train import train

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Use": (analyse, generate, attribute),
    "Train": (train, evaluate, extract, store, corrupt),
    "Guard": (route, policy_group, redteam, serve, audit, review, feedback, drift),
    "Inspect": (card, check),
}


@click.group(
    name="lrp4rag",
    cls=CommandGroup,
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


main.add_sections(SECTIONS)

"""`python -m experiments entailment`: train a small model of whether a passage supports a sentence."""

from __future__ import annotations

from pathlib import Path

import click

from lrp4rag.cli.command import command
from lrp4rag.cli.options import PATH
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder, folder_written_whole
from lrp4rag.util.terminal import say


@command()
@click.argument("data", metavar="DATA")
@click.option("--out", required=True, type=PATH, help="Folder for the model.")
@click.option("--device", help="cpu, cuda or cuda:K.  [default: cuda where there is one]")
def entailment(data: str, out: Path, device: str | None) -> None:
    """Fine-tune MiniLM (22M parameters) on DATA: does a chunk of the passages support a sentence of the
    response? Sentences that an annotated span touches are not supported.

    The folder can be given to the commands compare and baseline (--entailment) for responses to other
    sources; without it they train such a model inside each fold.
    """
    from experiments.systems.entailment import train_entailment
    from experiments.systems.resources import Choices, Resources
    from lrp4rag.data import load_examples

    check_folder(out, whole=True)
    if out.exists() and any(out.iterdir()):
        raise InputError("the model needs a new or empty folder", path=out)
    examples = [one for one in load_examples(data) if one.labels is not None]
    if not any(one.labels for one in examples):
        raise InputError("no response here has annotated spans to learn from", path=data)
    with folder_written_whole(out) as partial:
        train_entailment(examples, Resources(choices=Choices(device=device)), partial)
    say(f"wrote {out}")

"""`python -m experiments localise`: how well hallucinated tokens, spans and sentences are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.cli.options import store_option
from lrp4rag.cli.command import advanced, command
from lrp4rag.cli.options import BOOTSTRAP, GENERATOR, PATH, check_written
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import say_json
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from lrp4rag.features.blocks import Block
    from lrp4rag.training.localisation import Localisation

COLUMNS = ("token AUROC", "token AP", "span F1", "sentence F1")
"""Precision and recall are in the record."""
RESPONSES = ("auroc", "accuracy", "f1", "ece")


@command()
@store_option("Store with signals of labelled responses (python -m experiments extract).")
@click.option("--out", type=PATH, help="Also write the record to this JSON file.")
@GENERATOR
@advanced(
    "--block",
    "blocks",
    multiple=True,
    metavar="NAME",
    help="Features of tokens (experiments/tokens): plain and around, of a plain pass, or signals, segments, "
    "quick, state and passages, of passes in relevance mode; repeatable.  "
    "[default: signals, state, passages]",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME",
    help="Instead of blocks, only this token feature (experiments/tokens); repeat it for several.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(["lookback", "shares", "norms", "none"]),
    help="Instead of blocks, with the features this profile, or none; repeat it for several.",
)
@BOOTSTRAP
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
def localise(
    store: Path,
    out: Path | None,
    generator: tuple[str, ...],
    blocks: tuple[str, ...],
    features: tuple[str, ...],
    profiles: tuple[str, ...],
    resamples: int,
    as_json: bool,
) -> None:
    """Cross-validate token classifiers on what a STORE holds, and print their metrics per generator.

    They learn from the chosen responses of all generators together, with folds grouped by source;
    thresholds are chosen inside the folds. Beside them stand smoothed relevance, of which only the
    threshold is learned, and controls. States need a store with that part (python -m experiments extract
    --parts relevance,signals,states).
    """
    from dataclasses import asdict

    from experiments.tokens.blocks import parts_of
    from experiments.tokens.extraction import records_for
    from lrp4rag.training.folds import ONCE
    from lrp4rag.training.localisation import CLASSIFIER, lines_record, localisation
    from lrp4rag.training.rows import Rows
    from lrp4rag.training.token_folds import cross_validate_tokens
    from lrp4rag.training.tokens import tokens_of
    from lrp4rag.util.files import write_atomically

    if out is not None:
        check_written(out)
    made = _blocks(blocks, features, profiles)
    rows = Rows.open(store).select_generators(generator)
    protocol = ONCE
    tokens = tokens_of(rows, made, lambda blocks: records_for(rows, parts_of(blocks)))
    predicted = {CLASSIFIER: cross_validate_tokens(tokens, protocol)}
    found = localisation(rows, tokens, predicted, protocol, resamples=resamples)
    settings = {
        "blocks": {name: asdict(block) for name, block in made.items()},
        "columns": {name: table.shape[1] for name, table in tokens.blocks.items()},
    }
    record = {
        "protocol": protocol.words,
        "settings": settings,
        "chosen": list(found.chosen),
        "generators": lines_record(found),
    }
    if out is not None:
        write_atomically(out, json.dumps(record, indent=2) + "\n")
    if as_json:
        say_json(record)
    else:
        _print(found, protocol.words)


def _blocks(
    blocks: tuple[str, ...], features: tuple[str, ...], profiles: tuple[str, ...]
) -> dict[str, Block]:
    from experiments.tokens.blocks import FULL_BLOCKS, blocks_named
    from experiments.tokens.table import TokenTable

    if not features and not profiles:
        return blocks_named(blocks or FULL_BLOCKS)
    if blocks:
        raise InputError("--block names features by itself; leave --feature and --profile out")
    if "none" in profiles and len(set(profiles)) > 1:
        raise InputError("--profile none leaves all profiles out; name it alone")
    table = TokenTable()
    return {
        "chosen": TokenTable(
            features=tuple(dict.fromkeys(features)) or table.features,
            profiles=tuple(name for name in dict.fromkeys(profiles) if name != "none")
            if profiles
            else table.profiles,
        )
    }


def _print(localisation: Localisation, protocol: str) -> None:
    """A table for each generator; controls are dim. `protocol` says in words who learned from what."""
    from rich.table import Table

    from lrp4rag.report.numbers import METRICS, stacked
    from lrp4rag.training.localisation import CONTROLS
    from lrp4rag.util.terminal import open_console

    console = open_console()
    console.print(f"{protocol}; 95 % bootstrap intervals over sources", style="dim")
    for generator, lines in localisation.lines.items():
        counts = (
            f"{localisation.rows[generator]} responses, {localisation.hallucinated[generator]} hallucinated"
        )
        title = f"{one_line(generator, 60)}: {counts}"
        table = Table("", *COLUMNS, title=title, title_justify="left", show_lines=True)
        for name, line in lines.items():
            values = (line.tokens["auroc"], line.tokens["auprc"], line.spans["f1"], line.sentences["f1"])
            table.add_row(name, *map(stacked, values), style="dim" if name in CONTROLS else None)
        console.print(table)
        whole = Table("whole responses", *(METRICS[name] for name in RESPONSES), show_lines=True)
        for name, metrics in localisation.responses[generator].items():
            cells = [stacked(metrics[metric]) for metric in RESPONSES]
            whole.add_row(name, *cells, style="dim" if name in CONTROLS else None)
        console.print(whole)

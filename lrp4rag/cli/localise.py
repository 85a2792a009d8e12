"""`lrp4rag localise`: how well tokens, spans and sentences that are made up are found."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lrp4rag.cli.options import GENERATOR, RESAMPLES, writable
from lrp4rag.errors import InputError


@click.command(short_help="How well made-up tokens, spans and sentences are found, from a store.")
@click.option(
    "--store",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Store with signals of labelled responses (lrp4rag extract --parts relevance,signals).",
)
@click.option("--out", type=click.Path(path_type=Path), help="Also write the record to this JSON file.")
@GENERATOR
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME",
    help="Only this token feature (docs/features.md); repeat it for several.  [default: all]",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(["lookback", "shares", "norms", "none"]),
    help="Only this profile, or none; repeat it for several.  [default: all]",
)
@RESAMPLES
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
def localise(
    store: Path,
    out: Path | None,
    generator: tuple[str, ...],
    features: tuple[str, ...],
    profiles: tuple[str, ...],
    resamples: int,
    as_json: bool,
) -> None:
    """Cross-validate a token classifier on what a STORE holds, and print its metrics per generator.

    It learns from the chosen responses of all generators together, with folds grouped by source;
    thresholds are chosen inside the folds. Beside it stand smoothed relevance, of which only the threshold
    is learned, and controls.
    """
    from dataclasses import replace

    import numpy as np

    from lrp4rag.classifiers.tokens import TokenClassifier
    from lrp4rag.experiments.localisation import localisation, record
    from lrp4rag.experiments.protocol import HONEST
    from lrp4rag.experiments.rows import Rows
    from lrp4rag.experiments.tokens import Tokens, located
    from lrp4rag.features.table import TokenTable
    from lrp4rag.files import write_atomically
    from lrp4rag.report.localisation import print_localisation

    if out is not None:
        writable(out)
    chosen = tuple(dict.fromkeys(profiles))
    if "none" in chosen and len(chosen) > 1:
        raise InputError("--profile none leaves all profiles out; name it alone")
    columns = TokenTable()
    if features:
        columns = replace(columns, features=tuple(dict.fromkeys(features)))
    if chosen:
        columns = replace(columns, profiles=tuple(name for name in chosen if name != "none"))
    rows = Rows.open(store)
    if generator:
        for name in generator:
            rows.select_generator(name)
        rows = rows.select(np.isin(rows.generators, generator))
    protocol = replace(HONEST, repeats=1)
    tokens = Tokens.of(rows, columns)
    found = localisation(
        rows, tokens, located(tokens, TokenClassifier(), protocol), protocol, resamples=resamples
    )
    settings = {"features": columns.features, "profiles": columns.profiles, "columns": tokens.table.shape[1]}
    made = record(found, protocol, settings)
    if out is not None:
        write_atomically(out, json.dumps(made, indent=2) + "\n")
    if as_json:
        click.echo(json.dumps(made))
    else:
        print_localisation(found, protocol)

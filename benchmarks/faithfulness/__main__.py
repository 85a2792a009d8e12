"""Is the relevance faithful? Needle, perturbation and passage ablation, against other methods.

    python -m benchmarks.faithfulness [--samples 120] [--out DIR] [--json]

Written to DIR: rows.jsonl (a line per experiment, sample and method; a killed run goes on from there),
configuration.json, report.md, results.json and figures (PNG). Keys of --json (and of results.json):

    configuration              what the rows share: reader (its digest), seed, data, prompt limit, ...
    samples                    {experiment: how many prompts}
    needle.mass                positive relevance on the planted passage, as a share of all passages'
    needle.pointing            share of prompts whose planted passage has the largest summed relevance
    needle.recall              gold tokens among the top 10 % of the passages' tokens
    perturbation.area          area between the LeRF and MoRF curves of the target logit, in logits
    ablation.spearman          rank correlation of passage relevance and drop in log-probability,
                               within each prompt, mean over prompts
    ablation.pooled            the same over all passages, each prompt's mean subtracted from both

Each of the measures holds (more is better in all of them):

    methods                    {method: {value, low, high}}: 95 % bootstrap interval over prompts
    differences                {method: {value, low, high}}: the best of our composites minus it, paired
    ours, other                the best of our composites, and the best of the other methods
    verdict                    "best", "level" or "worse": ours against that other; best and worse where the
                               interval of their difference excludes 0
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from benchmarks.faithfulness import tables
from benchmarks.faithfulness.benchmark import NAMES, TITLES, Outcome, benchmark
from benchmarks.faithfulness.cases import MAX_PROMPT
from benchmarks.faithfulness.methods import METHODS
from lrp4rag.errors import LRP4RAGError
from lrp4rag.reader import DEFAULT_READER, load_reader


class _Names(click.ParamType[Any]):
    """Names with commas between them."""

    name = "names"

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = value if isinstance(value, list) else [name.strip() for name in str(value).split(",")]
        for name in names:
            if name not in self.known:
                self.fail(f"'{name}' is not one of {', '.join(self.known)}", param, ctx)
        return [name for name in self.known if name in names]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--samples",
    default=120,
    show_default=True,
    type=click.IntRange(min=4),
    help="Prompts for needle and perturbation; ablation takes a third as many.",
)
@click.option("--seed", default=0, show_default=True, help="Draws the synthetic prompts.")
@click.option(
    "--only",
    type=_Names(NAMES),
    default=list(NAMES),
    show_default="all",
    help=f"Experiments to run: {', '.join(NAMES)}.",
)
@click.option(
    "--methods",
    type=_Names(tuple(METHODS)),
    default=list(METHODS),
    show_default="all",
    help=f"Methods to compare: {', '.join(METHODS)}.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/faithfulness"),
    show_default=True,
    help="Folder for rows, tables and figures; a run that was killed goes on from its rows.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="RAGTruth folder or examples as JSONL for perturbation and ablation, cut to fit; the needle "
    "prompts stay synthetic.",
)
@click.option(
    "--reader",
    "reader_name",
    default=DEFAULT_READER,
    show_default=True,
    help="Hub id, folder or .gguf file of the reader.",
)
@click.option(
    "--max-prompt",
    default=MAX_PROMPT,
    show_default=True,
    help="Prompt tokens, chat template included: real prompts are cut, longer synthetic ones refused.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are in the source's head.")
def main(
    samples: int,
    seed: int,
    only: list[str],
    methods: list[str],
    out: Path,
    data: Path | None,
    reader_name: str,
    max_prompt: int,
    as_json: bool,
) -> None:
    """Is the relevance faithful? Compare our composites with other attribution methods.

    \b
    needle        prompts with one planted passage that holds the answer: is it found?
    perturbation  zero the embeddings of passage tokens, the most or the least relevant
                  first: how far are the two curves of the answer's logit apart?
    ablation      mask a passage: does its relevance tell the drop in log-probability?

    Every table ends with a verdict: whether the best of attnlrp, cp_lrp and paper is best, level with
    the best other method, or worse, by a paired bootstrap over prompts.

    \b
    Try first (a minute or two):
      python -m benchmarks.faithfulness --samples 8 --only needle --out out/try
    All of it takes more than an hour on one core; it can be killed and run again.
    """
    try:
        outcome = benchmark(
            load_reader(reader_name),
            out,
            samples=samples,
            seed=seed,
            only=only,
            methods=methods,
            data=data,
            limit=max_prompt,
        )
    except LRP4RAGError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(error.exit_code) from error
    if as_json:
        click.echo(json.dumps(outcome.as_dict(), indent=2))
    else:
        _print(outcome)
        click.echo(f"Written to {out}")


def _print(outcome: Outcome) -> None:
    from rich.console import Console

    console = Console()
    console.print(outcome.note, markup=False)
    for part in tables.terminal(outcome.results, TITLES):
        console.print(part)


if __name__ == "__main__":
    main()

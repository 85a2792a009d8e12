"""Is the relevance faithful? Needle, perturbation and passage ablation, against other methods.

    python -m benchmarks.faithfulness [--samples 120] [--out DIR] [--json]

Written to DIR: cells.json (what was measured of each experiment, sample and method; a killed run resumes from
there), report.md, results.json and figures (PNG). Keys of --json (and of results.json):

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

import click

from benchmarks.command import SETTINGS, as_json, count, exit_codes, listed
from benchmarks.faithfulness.benchmark import benchmark
from benchmarks.faithfulness.cases import MAX_PROMPT
from benchmarks.faithfulness.measures import EXPERIMENTS
from benchmarks.faithfulness.methods import METHODS
from benchmarks.harness import silence
from lrp4rag.reader import DEFAULT_READER, load_reader


@click.command(context_settings=SETTINGS)
@count("--samples", 120, "Prompts for needle and perturbation; ablation takes a third as many.", least=4)
@count("--seed", 0, "Draws the synthetic prompts.", least=0)
@listed("--only", click.Choice(list(EXPERIMENTS)), ",".join(EXPERIMENTS), "Experiments to run.")
@listed("--methods", click.Choice(list(METHODS)), ",".join(METHODS), "Methods to compare.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/faithfulness"),
    show_default=True,
    help="Folder for cells, tables and figures; a run that was killed resumes from its cells.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="RAGTruth folder or examples as JSONL for perturbation and ablation, cut to fit; the needle "
    "prompts stay synthetic.",
)
@click.option(
    "--reader", default=DEFAULT_READER, show_default=True, help="Hub id, folder or .gguf file of the reader."
)
@count(
    "--max-prompt",
    MAX_PROMPT,
    "Prompt tokens, chat template included: real prompts are cut, longer synthetic ones refused.",
)
@as_json
def main(
    samples: int,
    seed: int,
    only: tuple[str, ...],
    methods: tuple[str, ...],
    out: Path,
    data: Path | None,
    reader: str,
    max_prompt: int,
    as_json: bool,
) -> None:
    """Is the relevance faithful? Compare our composites with other attribution methods.

    \b
    needle        prompts with one planted passage that holds the answer: is it found?
    perturbation  zero the embeddings of passage tokens, the most or the least relevant
                  first: how far are the two curves of the answer's logit apart?
    ablation      mask a passage: does its relevance predict the drop in log-probability?

    Every table ends with a verdict: whether the best of attnlrp, cp_lrp and paper is best, level with
    the best other method, or worse, by a paired bootstrap over prompts.

    \b
    Try first (a minute or two):
      python -m benchmarks.faithfulness --samples 8 --only needle --out out/try
    All of it takes more than an hour on one core; it can be killed and run again.
    """
    silence()
    with exit_codes():
        results, page = benchmark(
            load_reader(reader),
            out,
            samples=samples,
            seed=seed,
            only=only,
            methods=methods,
            data=data,
            limit=max_prompt,
        )
    if as_json:
        click.echo(json.dumps(results, indent=2))
    else:
        click.echo(f"{page}\nWritten to {out}")


if __name__ == "__main__":
    main()

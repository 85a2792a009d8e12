"""`lrp4rag route` and `lrp4rag policy`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from lrp4rag.cli.command import Command, command
from lrp4rag.cli.inputs import Source, example_options, work_through
from lrp4rag.cli.options import JSON_LINES, PATH, JudgeChoice, judge_options, policy_option
from lrp4rag.util.errors import InputError
from lrp4rag.util.terminal import open_console, say, say_json


@command()
@example_options(response="The response.", more=False)
@policy_option()
@click.option("--simulate", "simulated_path", type=PATH, help="Another policy, to see what it would change.")
@judge_options(
    click.option("--device", help="cpu, cuda, …  [default: cuda where there is one]"),
    click.option(
        "--operating-point",
        metavar="NAME",
        help="A threshold of the detector's card: one-in-ten, balanced, high-precision or high-recall.",
    ),
)
@JSON_LINES
@click.pass_context
def route(
    ctx: click.Context,
    source: Source,
    policy_path: Path | None,
    simulated_path: Path | None,
    choice: JudgeChoice,
    as_json: bool,
) -> None:
    """Judge answers, run the checks of a policy on them, and say what it does with each, and why.

    At the end: how many answers are served, and, where there are labels, how many of these are hallucinated
    and how many faithful ones are withheld; beside serving all, and beside the probability alone.
    docs/policy.md says how a policy decides.

    \b
    Examples:
      lrp4rag route examples/contradictions.jsonl
      lrp4rag route answers.jsonl --policy strict.yaml --json > decisions.jsonl
      lrp4rag route answers.jsonl --simulate strict.yaml
    """
    from lrp4rag.guard.policy import load_policy

    chosen = load_policy(policy_path)
    policies = {chosen.name: chosen}
    if simulated_path is not None:
        simulated = load_policy(simulated_path)
        policies[simulated.name if simulated.name not in policies else f"{simulated.name} (simulated)"] = (
            simulated
        )
    examples = source.read()
    missing = next((example.id for example in examples if example.response is None), None)
    if missing is not None:
        raise InputError(f"example '{missing}' has no response", field="response")

    from rich.text import Text

    from lrp4rag.example import Example
    from lrp4rag.guard.policy.simulate import Simulation, outcome_record, outcome_table
    from lrp4rag.report.decision import decision_lines

    console, simulation = open_console(), Simulation(policies)
    verdicts = choice.open().judge_each(examples, evidence=False, reasons=False)

    def work(example: Example) -> None:
        verdict = next(verdicts)
        if isinstance(verdict, Exception):
            raise verdict
        (_, first), *simulations = simulation.add(example, verdict).items()
        if as_json:
            records = {name: assessment.record() for name, assessment in simulations}
            say_json({"id": example.id, **first.record(), "simulated": records})
            return
        for line in decision_lines(first, example.id):
            console.print(line, soft_wrap=True)
        for name, assessment in simulations:
            if assessment.decided.action != first.decided.action:
                words = f"  {name}: {assessment.decided.action}, {assessment.decided.reason}"
                console.print(Text(words, style="bold"), soft_wrap=True)

    with closing(verdicts):
        code = work_through(examples, work)
    if len(examples) > 1:
        summary = open_console(stderr=True) if as_json else console
        summary.print()
        summary.print(outcome_table(simulation.rows))
        if simulated_path is not None:
            summary.print(f"{simulation.changed} of {len(examples)} decisions change")
        if as_json:
            say_json({"outcomes": {name: outcome_record(rows) for name, rows in simulation.rows.items()}})
    ctx.exit(code)


@click.group()
def policy() -> None:
    """A policy is a YAML file that says what is done with answers; docs/policy.md has three complete ones.

    \b
    Examples:
      lrp4rag policy show > mine.yaml
      lrp4rag policy check mine.yaml
    """


@policy.command(cls=Command, short_help="Print a policy with everything it leaves to the default.")
@click.argument("path", type=PATH, required=False, metavar="[FILE]")
def show(path: Path | None) -> None:
    """Print the policy of FILE, or the default one, with all settings: a start for one of your own.

    \b
    Example:
      lrp4rag policy show > mine.yaml
    """
    import yaml

    from lrp4rag.guard.policy import load_policy

    parsed = load_policy(path)
    say(
        yaml.safe_dump(parsed.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100),
        end=False,
    )


@policy.command(cls=Command, short_help="Say whether a file is a policy.")
@click.argument("path", type=PATH, metavar="FILE")
def check(path: Path) -> None:
    """Say whether FILE is a policy, with its name and the hash that decisions name it by; else what is wrong,
    and on which line.

    \b
    Example:
      lrp4rag policy check mine.yaml
    """
    from lrp4rag.guard.policy import load_policy

    parsed = load_policy(path)
    say(f"{parsed.name}: {parsed.hash}; checks: {', '.join(parsed.checks) or 'none'}")

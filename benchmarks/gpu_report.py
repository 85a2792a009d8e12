"""The page of a GPU run, in Markdown."""

from __future__ import annotations

from typing import Any

TITLES = {
    "forward": "plain forward",
    "R_response": "R_response (one push)",
    "per_passage": "relevance by passage ({segments} tangents)",
    "R_prompt": "R_prompt (one pull, replay included)",
    "matrix": "full R* ({response} rows)",
    "backward_row": "one row by autograd, kept graph",
    "forward_backward_row": "one row by autograd, its forward included",
}
STREAMS = {
    "generate": "plain generate",
    "stream": "stream, 1 tangent",
    "recording": "recording inside generate, 1 tangent",
    "stream_segments": "stream, {segments} tangents",
    "recording_segments": "recording, {segments} tangents",
}


def page(result: dict[str, Any]) -> str:
    """Markdown: the settings, one table of passes, one of streaming, the targets, the check."""
    parts = [_intro(result), _passes(result), _streaming(result), _targets(result), _check(result)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _intro(result: dict[str, Any]) -> list[str]:
    peak = "No peak is known for this device."
    if result["peak_flops"] is not None:
        peak = (
            f"Peaks: {result['peak_flops'] / 1e12:g} TFLOP/s dense, {result['peak_bandwidth'] / 1e12:g} TB/s "
            f"({result['peak_source']})."
        )
    return [
        f"{result['device_name']}, {result['date']}, PyTorch {result['torch']}: the shape {result['shape']} "
        f"({result['parameters'] / 1e9:.2f} billion random weights) in {result['dtype']}, {result['prompt']} "
        f"prompt and {result['response']} response tokens, medians of {result['rounds']} rounds. {peak}"
    ]


def _passes(result: dict[str, Any]) -> list[str]:
    text = [
        "| pass | ms | plain forwards | TFLOP | share of the arithmetic peak |",
        "|---|---|---|---|---|",
    ]
    for one in result["passes"]:
        title = TITLES[one["name"]].format(**result)
        text.append(
            f"| {title} | {one['seconds'] * 1000:.1f} | {one['over_forward']:.2f} "
            f"| {one['flops'] / 1e12:.3g} | {_percent(one['share_of_arithmetic'])} |"
        )
    return text


def _streaming(result: dict[str, Any]) -> list[str]:
    streamed = result["streaming"]
    text = [
        "| generation | first token, ms | later token, ms | / generate | tokens/s | share of bandwidth |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in STREAMS.items():
        text.append(
            f"| {title.format(**result)} | {streamed[f'{name}_first_seconds'] * 1000:.1f} "
            f"| {streamed[f'{name}_later_seconds'] * 1000:.2f} "
            f"| {streamed[f'{name}_later_over_generate']:.2f} | {streamed[f'{name}_tokens_per_second']:.1f} "
            f"| {_percent(streamed.get(f'share_of_bandwidth_{name}'))} |"
        )
    return text


def _targets(result: dict[str, Any]) -> list[str]:
    text = ["| target | measured | wanted | met |", "|---|---|---|---|"]
    for one in result["targets"]:
        met = "yes" if one["met"] else "no"
        text.append(f"| {one['name']} | {one['value']:.2f} | {one['target']} | {met} |")
    return text


def _check(result: dict[str, Any]) -> list[str]:
    if result["check"] is None:
        return ["Relevance was not checked in this run."]
    errors = ", ".join(f"{name} {error:.0e}" for name, error in result["check"].items())
    return [
        f"Default reader in float32, {result['device']} against CPU, largest difference over the largest "
        f"value: {errors}."
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"

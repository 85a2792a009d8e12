"""How near relevance of a quantised model is: to that of its dequantised weights, and to float32's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from bitsandbytes.functional import has_avx512bf16
from torch import Tensor, nn

from benchmarks.command import Report, benchmark, count, table
from benchmarks.harness import difference
from lrp4rag import Detector
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.lrp import COMPOSITES, relevance_mode
from lrp4rag.lrp.attribute import segment_weights
from lrp4rag.reader import load_reader
from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reader import Reader
from lrp4rag.report.numbers import number
from lrp4rag.util.errors import RelevanceError
from tests.lrp.quantise import build, dynamic_int8, int8, linears, llm_int8, nf4, twin
from tests.tiny import random_tokens

EXAMPLE = "examples/hallucinated.json"
FAMILIES = ("llama", "qwen2", "phi3", "gemma2", "gemma3", "qwen3_moe")
COMPOSITE = "attnlrp"
BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Kernel:
    """What it is called, and what quantises a model's linear layers but for the head."""

    words: str
    quantise: Callable[[Any], Any]


KERNELS = {
    "int8": Kernel("torchao int8 weight-only", int8),
    "nf4": Kernel("bitsandbytes NF4", partial(nf4, exact=True)),
    "nf4_double": Kernel("bitsandbytes NF4, double quantisation", partial(nf4, exact=True, double=True)),
    "nf4_here": Kernel("bitsandbytes NF4, this processor's kernel", nf4),
    "llm_int8": Kernel("bitsandbytes LLM.int8", llm_int8),
    "dynamic_int8": Kernel("torchao dynamic int8", dynamic_int8),
}


def agreement(found: Tensor, expected: Tensor) -> dict[str, float]:
    pair = np.stack([one.double().numpy().ravel() for one in (found, expected)])
    return {"largest_error": difference(found, expected), "correlation": float(np.corrcoef(pair)[0, 1])}


def pushed(model: nn.Module, encoded: Any, weights: Tensor, composite: str) -> Tensor:
    with relevance_mode(model, composite) as flow:
        return flow.push(encoded, weights).cpu()


# Tiny models of random weights, which amplify rounding.


def tiny(kernel: Kernel, composite: str, family: str, seed: int) -> dict[str, float] | None:
    """None where relevance mode refuses the quantised model."""
    original = build(family, seed=seed)
    quantised = kernel.quantise(copy.deepcopy(original))
    plain, tokens = twin(quantised, original), random_tokens(17, 5)
    weights = torch.randn((2, 17), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    both = torch.cat([weights, weights.sum(0, keepdim=True)])
    try:
        found = pushed(quantised, tokens, both, composite)
    except RelevanceError:
        return None
    sums = {"sum_error": difference(found[0] + found[1], found[2])}
    return agreement(found, pushed(plain, tokens, both, composite)) | sums


def of_tiny(seeds: int) -> dict[str, dict[str, dict[str, Any]]]:
    """By kernel and composite: the worst of all families and seeds."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, kernel in KERNELS.items():
        found[name] = {}
        for composite in COMPOSITES:
            runs = [
                (family, tiny(kernel, composite, family, seed))
                for family in FAMILIES
                for seed in range(seeds)
            ]
            known = [one for _, one in runs if one is not None]
            found[name][composite] = {
                "largest_error": max(one["largest_error"] for one in known),
                "correlation": min(one["correlation"] for one in known),
                "sum_error": max(one["sum_error"] for one in known),
                "models": len(runs),
                "refused": sorted({family for family, one in runs if one is None}),
            }
    return found


# The default reader.


def held_bytes(model: nn.Module) -> int:
    """Of its parameters and buffers, each once, with the scales of quantised ones."""
    kept = {id(one): one for one in (*model.parameters(), *model.buffers())}
    return sum(map(tensor_bytes, kept.values()))


def tensor_bytes(tensor: Any) -> int:
    state = getattr(tensor, "quant_state", None)
    if state is not None:
        nested = state.state2.absmax.nbytes if state.nested else 0
        return int(tensor.data.nbytes + state.absmax.nbytes + nested)
    codes = getattr(tensor, "CB", None)
    if codes is not None:
        return int(codes.nbytes + tensor.SCB.nbytes)
    if hasattr(tensor, "__tensor_flatten__"):
        return sum(tensor_bytes(getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0])
    return int(tensor.nbytes)


def by_segment(reader: Reader, encoded: Encoded) -> Tensor:
    return pushed(reader.model, encoded, segment_weights(encoded), COMPOSITE).float()


def probability(reader: Reader, example: Example) -> float | None:
    """By the bundled detector, as though it were the reader that it learned with."""
    return Detector.load(reader=reader).judge(example, evidence=False).probability


def of_reader(example: Example) -> dict[str, dict[str, Any]]:
    """By the weights: bytes, relevance against float32's and against the dequantised weights', and the
    probability of a hallucination."""
    exact = load_reader(device="cpu")
    encoded = exact.encode(example)
    expected = by_segment(exact, encoded)
    found = {
        "float32": {"bytes": held_bytes(exact.model), "probability": probability(exact, example)},
        "bfloat16": _against(
            replace(load_reader(device="cpu", dtype="bfloat16"), identity=exact.identity),
            expected,
            encoded,
            example,
        ),
    }
    for name, kernel in KERNELS.items():
        model = kernel.quantise(copy.deepcopy(exact.model))
        reader = replace(exact, model=model)
        held = held_bytes(model)  # before the first call, which packs weights anew
        plain = by_segment(replace(exact, model=twin(model, exact.model)), encoded)
        found[name] = _against(reader, expected, encoded, example) | {"bytes": held}
        found[name]["dequantised_error"] = difference(by_segment(reader, encoded), plain)
        found[name]["layers"] = len(linears(exact.model, head=False))
    return found


def _against(reader: Reader, expected: Tensor, encoded: Encoded, example: Example) -> dict[str, Any]:
    return {
        "bytes": held_bytes(reader.model),
        **agreement(by_segment(reader, encoded), expected),
        "probability": probability(reader, example),
    }


def tables(tiny: Mapping[str, Mapping[str, Any]], reader: Mapping[str, Mapping[str, Any]]) -> list[str]:
    errors = [
        (
            KERNELS[name].words,
            *(f"{found[composite]['largest_error']:.1g}" for composite in COMPOSITES),
            f"{min(one['correlation'] for one in found.values()):.4f}",
            f"{max(one['sum_error'] for one in found.values()):.1g}",
            f"{reader[name]['dequantised_error']:.1g}",
            ", ".join(sorted({family for one in found.values() for family in one["refused"]})),
        )
        for name, found in tiny.items()
    ]
    head = ("kernel", *COMPOSITES, "lowest correlation", "of a sum", "default reader", "refused")
    weights = [
        (
            KERNELS[name].words if name in KERNELS else name,
            f"{one['bytes'] / BYTES:.0f} MB",
            number(one.get("correlation"), 4),
            number(one.get("largest_error"), 3),
            number(one["probability"], 3),
        )
        for name, one in reader.items()
    ]
    second = ("weights", "in memory", "correlation with float32", "largest error", "probability")
    return [*table(head, errors), "", *table(second, weights)]


@benchmark
@count("--seeds", 3, "Tiny models of each family.")
def main(seeds: int) -> Report:
    """Push through quantised weights, against their dequantised twin and against float32.

    \b
    The first table is of tiny models of random weights: the largest error over the largest relevance, the
    worst of six families. The second is of the default reader on examples/hallucinated.json, by segment.

    \b
    Example:
      python -m benchmarks.quantised --out docs/results/quantised.json      five minutes on 2 cores
    """
    torch.manual_seed(0)
    (example,) = load_examples(EXAMPLE)
    small, reader = of_tiny(seeds), of_reader(example)
    versions = {name: version(name) for name in ("torch", "torchao", "bitsandbytes")}
    about = {"example": EXAMPLE, "composite": COMPOSITE, "families": FAMILIES, "versions": versions}
    bfloat16 = has_avx512bf16()  # type: ignore[no-untyped-call]
    result = {"tiny": small, "reader": reader, "bfloat16_instructions": bfloat16, **about}
    return result, tables(small, reader)


if __name__ == "__main__":
    main()

"""A peer in a process of its own: one JSON task on stdin, then one JSON answer per JSON request.

Runs in every environment, so it needs torch and transformers (4.56 or newer) and nothing else. After the
task, requests are `{"do": ...}` with

    forward            a plain forward pass (sdpa, logits of the response rows only, no gradients)
    response, prompt   R_response or R_prompt in one pass, for peers that can (`whole` in the first answer);
                       prompt starts from nothing and keeps what units share (a graph, a replay)
    units              `count` rows (or columns) of R*, from `first` on
    forget             free what is kept, and start the peak memory anew

An answer has `seconds`, `peak_bytes` since the last forget, and `values`; or `error`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, ClassVar, TextIO

import torch

from benchmarks.harness import Example, forget_peak, peak_resident, plain_forward, seconds


class Peer:
    """One way to the relevance of one example: n prompt tokens, t response tokens, R* is t x n."""

    packages: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()
    """Which of response and prompt it gets without going through R* row by row."""
    axis: ClassVar[str] = "row"
    """What a unit is: a row of R* (there are t) or a column (n)."""
    chunk: ClassVar[int] = 1
    """Units that it does at a time."""
    picks: ClassVar[int] = 1
    """How many times `units` is timed in a round."""
    extra_units: ClassVar[int] = 0
    """Passes of a call of `units` that belong to no unit, and are needed once for all of them."""
    agrees_with: ClassVar[str] = ""
    """The composite whose relevance this should be; empty where it explains something else."""
    explains: ClassVar[str] = "the response token's logit"

    def __init__(self, model: Any, example: Example, task: dict[str, Any]) -> None:
        self.model, self.example, self.task = model, example, task
        self.n, self.t = len(example.prompt_ids), len(example.response_ids)

    def forward(self) -> torch.Tensor:
        """The explained logits (t,)."""
        logits = plain_forward(self.model, self.example)
        return logits[torch.arange(self.t), list(self.example.response_ids)]

    def response(self) -> torch.Tensor:
        """R_response (t,)."""
        raise NotImplementedError

    def prompt(self) -> torch.Tensor:
        """R_prompt (n,), from nothing; what units share is kept."""
        raise NotImplementedError

    def units(self, first: int, count: int) -> torch.Tensor:
        """Rows (count, n) of R*, or columns (t, count)."""
        raise NotImplementedError

    def forget(self) -> None:
        """Free what is kept."""


def load_model(folder: str) -> Any:
    """The plain Hugging Face model in float32 with sdpa attention, nothing requiring gradients."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    _old_rope(config)
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder,
        config=config,
        dtype=torch.float32,
        attn_implementation="sdpa",
        trust_remote_code=False,
    )
    assert model.dtype == torch.float32
    model.requires_grad_(False)
    model.eval()
    return model


def _old_rope(config: Any) -> None:
    """Transformers 4 reads `rope_theta`, and of `rope_parameters` (written by 5) takes no notice."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters or int(importlib.metadata.version("transformers").partition(".")[0]) >= 5:
        return
    config.rope_theta = parameters["rope_theta"]
    scaling = {key: value for key, value in parameters.items() if key != "rope_theta"}
    config.rope_scaling = None if scaling.get("rope_type", "default") == "default" else scaling


def serve(peer_class: type[Peer]) -> None:
    """Answer requests until stdin ends. What libraries print goes to stderr, not between the answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        task = json.loads(sys.stdin.readline())
        _limit_memory(task.get("memory_limit"))
        peer = _start(peer_class, task)
        _say(answers, _introduction(peer))
    except Exception as error:  # whatever a library raises is why this peer is unavailable
        _say(answers, {"error": _reason(error)})
        return
    for line in sys.stdin:
        try:
            _say(answers, _answer(peer, json.loads(line)))
        except Exception as error:
            _say(answers, {"error": _reason(error)})


def _start(peer_class: type[Peer], task: dict[str, Any]) -> Peer:
    example = Example(tuple(task["prompt_ids"]), tuple(task["response_ids"]))
    peer = peer_class(load_model(task["model"]), example, task)
    peer.model(torch.tensor([[1, 2, 3]]), use_cache=False)  # what is set up on the first call is not timed
    forget_peak()
    return peer


def _introduction(peer: Peer) -> dict[str, Any]:
    return {
        "whole": peer.whole,
        "axis": peer.axis,
        "units": peer.t if peer.axis == "row" else peer.n,
        "chunk": peer.chunk,
        "picks": peer.picks,
        "extra_units": peer.extra_units,
        "agrees_with": peer.agrees_with,
        "explains": peer.explains,
        "threads": torch.get_num_threads(),
        "versions": {
            name: importlib.metadata.version(name) for name in (*peer.packages, "torch", "transformers")
        },
    }


def _answer(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    what = request.pop("do")
    if what == "forget":
        peer.forget()
        forget_peak()
        return {"peak_bytes": peak_resident()}
    values: list[torch.Tensor] = []
    taken = seconds(lambda: values.append(getattr(peer, what)(**request)))
    peak = peak_resident()
    return {"seconds": taken, "peak_bytes": peak, "values": values[0].detach().double().tolist()}


def _limit_memory(extra: int | None) -> None:
    """Let allocations fail rather than the machine run out: `extra` bytes on top of what is mapped now."""
    statm = Path("/proc/self/statm")
    if extra is None or not statm.exists():
        return
    mapped = int(statm.read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + extra, hard))


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    short = f"{type(error).__name__}: {lines[0]}"[:300]
    memory = isinstance(error, MemoryError) or "not enough memory" in str(error) or "allocate" in str(error)
    return f"out of memory ({short})" if memory else short


def _say(stream: TextIO, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()

"""A peer in a process of its own: one task over a pipe, then one answer for each request.

    python -m benchmarks.peers.worker PEER PIPE

Runs in every environment, so it needs torch and transformers (4.56 or newer) and nothing else. A request
is the name of a method of `Peer`, with its arguments (`prompt` starts from nothing), or

    forget             free what is kept, and start the peak memory anew

An answer has `seconds`, `peak_bytes` since the last forget, and `values` (nested lists); or `error`.
"""

from __future__ import annotations

import importlib.metadata
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import Example, forget_peak, peak_resident, seconds
from benchmarks.peers.methods import PEERS, Peer


def load_model(folder: str) -> Any:
    """The plain Hugging Face model in float32 with sdpa attention, nothing requiring gradients."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    _old_rope(config)
    options: dict[str, Any] = {"dtype": torch.float32, "attn_implementation": "sdpa"}
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, config=config, trust_remote_code=False, **options
    )
    assert model.dtype == torch.float32
    return model.eval().requires_grad_(False)


def _old_rope(config: Any) -> None:
    """Transformers 4 reads `rope_theta`, and of `rope_parameters` (written by 5) takes no notice."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters or int(importlib.metadata.version("transformers").partition(".")[0]) >= 5:
        return
    config.rope_theta = parameters["rope_theta"]
    scaling = {key: value for key, value in parameters.items() if key != "rope_theta"}
    config.rope_scaling = None if scaling.get("rope_type", "default") == "default" else scaling


def start(name: str, model: str, prompt_ids: list[int], response_ids: list[int], composite: str) -> Peer:
    """A peer with its model loaded, from a folder, and called once."""
    PEERS[name].prepare()
    example = Example(tuple(prompt_ids), tuple(response_ids))
    peer = PEERS[name](load_model(model), example, model, composite)
    peer.model(torch.tensor([[1, 2, 3]]), use_cache=False)  # what is set up on the first call is not timed
    forget_peak()
    return peer


def introduction(peer: Peer) -> dict[str, Any]:
    names = ("whole", "axis", "chunk", "picks", "extra_units", "agrees_with", "explains")
    packages = (*peer.packages, "torch", "transformers")
    return {
        **{name: getattr(peer, name) for name in names},
        "units": peer.t if peer.axis == "row" else peer.n,
        "threads": torch.get_num_threads(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }


def answer(peer: Peer, do: str, **request: int) -> dict[str, Any]:
    if do == "forget":
        peer.forget()
        forget_peak()
        return {"seconds": 0.0, "peak_bytes": peak_resident(), "values": None}
    values: list[torch.Tensor] = []
    taken = seconds(lambda: values.append(getattr(peer, do)(**request)))
    peak = peak_resident()  # before the values are copied
    return {"seconds": taken, "peak_bytes": peak, "values": values[0].detach().double().tolist()}


def main(name: str, pipe: str) -> None:
    """Answer requests until the other end is closed."""
    requests = Connection(int(pipe))
    peer: Peer | None = None
    while True:
        try:
            request = requests.recv()
        except EOFError:
            return
        try:
            if peer is None:
                _limit_memory()
                peer = start(name, **request)
                requests.send(introduction(peer))
            else:
                requests.send(answer(peer, **request))
        except Exception as error:  # whatever a library raises is why this peer cannot answer
            requests.send({"error": _reason(error)})


def _limit_memory() -> None:
    """Let allocations fail rather than the machine run out: nine tenths of what is available now may be
    mapped on top of what is (Linux only)."""
    meminfo, statm = Path("/proc/meminfo"), Path("/proc/self/statm")
    if not meminfo.exists() or not statm.exists():
        return
    available = int(meminfo.read_text().partition("MemAvailable:")[2].split()[0]) * 1024
    mapped = int(statm.read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + available * 9 // 10, hard))


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    short = f"{type(error).__name__}: {lines[0]}"[:300]
    memory = isinstance(error, MemoryError) or "not enough memory" in str(error) or "allocate" in str(error)
    return f"out of memory ({short})" if memory else short


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Clocks and limits of the devices that benchmarks run on."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Limits:
    """Peaks that a device's maker states: dense bfloat16 FLOP/s, and bytes/s of its memory."""

    flops: float
    bandwidth: float
    source: str


# By a part of the name that CUDA gives, the more special first. Makers' tables often state FLOP/s with
# sparsity; these are half of that.
_KNOWN = (
    ("H200", Limits(989.5e12, 4.8e12, "NVIDIA H200 data sheet, SXM")),
    ("H100 PCIe", Limits(756e12, 2.0e12, "NVIDIA H100 PCIe data sheet")),
    ("H100 NVL", Limits(835.5e12, 3.9e12, "NVIDIA H100 NVL data sheet")),
    ("H100", Limits(989.5e12, 3.35e12, "NVIDIA H100 data sheet, SXM")),
    ("A100-SXM4-40GB", Limits(312e12, 1.555e12, "NVIDIA A100 data sheet, 40 GB")),
    ("A100-PCIE-40GB", Limits(312e12, 1.555e12, "NVIDIA A100 data sheet, 40 GB PCIe")),
    ("A100 80GB PCIe", Limits(312e12, 1.935e12, "NVIDIA A100 data sheet, 80 GB PCIe")),
    ("A100", Limits(312e12, 2.039e12, "NVIDIA A100 data sheet, 80 GB SXM")),
)


def known_limits(name: str) -> Limits | None:
    """The limits of a device that CUDA calls `name`, where they are known here."""
    return next((limits for part, limits in _KNOWN if part in name), None)


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return model or platform.processor() or platform.machine()


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was given: kernels run later than the calls that launch them."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def now(device: torch.device) -> float:
    """Seconds on a clock, once the device is idle."""
    synchronise(device)
    return time.perf_counter()


def seconds(function: Callable[[], object], device: torch.device) -> float:
    """Seconds that one call keeps the device: by its own events on a GPU, by the wall elsewhere.

    A call that waits for the device in between has those gaps counted too.
    """
    if device.type != "cuda":
        started = time.perf_counter()
        function()
        return time.perf_counter() - started
    synchronise(device)
    started_event = torch.cuda.Event(enable_timing=True)
    ended_event = torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.current_stream(device)
    stream.record_event(started_event)
    function()
    stream.record_event(ended_event)
    synchronise(device)
    return float(started_event.elapsed_time(ended_event)) / 1000

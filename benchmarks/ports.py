"""A port of this machine that nothing listens at."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Another program may take it before it is used; benchmarks live with that."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])

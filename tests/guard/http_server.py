"""HTTP servers in threads, for what is scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Prints nothing."""

    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> Any:
        """The JSON that was sent."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))


@contextmanager
def served(handler: type[Handler]) -> Iterator[str]:
    """The address of a server, with /v1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()

"""The errors a user can meet, each with the exit code that the command line gives it."""

from __future__ import annotations

from pathlib import Path

from lrp4rag.util.text import clipped, one_line, without_secrets

LONGEST = 2000
"""Characters of a message: what a user gave may be in it, and that may be megabytes."""


class LRP4RAGError(Exception):
    """Something failed while the input was fine. The command line exits with 1."""

    exit_code = 1

    def __init__(self, message: object = "") -> None:
        super().__init__(clipped(str(message), LONGEST))


class InputError(LRP4RAGError):
    """Bad usage or bad input. The message names file, line and field where they are known; `reason` is the
    message without them.

    The command line exits with 2.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.reason, self.path, self.line, self.field = message, path, line, field
        where = [] if path is None else [one_line(clipped(without_secrets(path), 500))]
        where += [] if line is None else [f"line {line}"]
        where += [] if field is None else [f"field '{one_line(field, 100)}'"]
        super().__init__(f"{', '.join(where)}: {message}" if where else message)


class RelevanceError(LRP4RAGError):
    """Relevance could not be computed (NaN or Inf in a layer, a patch that changed the logits)."""


EXAMPLE_ERRORS = (LRP4RAGError, RuntimeError, IndexError, ValueError)
"""Errors that one example can raise and the others need not: torch, for instance, where memory runs out on
one long row, or where a token has no embedding. A full disk is none of these."""


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error, with the next one where it ends with a colon."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    while len(lines) > 1 and lines[0].rstrip().endswith(":"):
        lines[:2] = [" ".join(lines[:2])]
    return one_line(lines[0], 300) if lines else type(error).__name__


class LRP4RAGWarning(UserWarning):
    """Something a user should know that does not stop the work."""

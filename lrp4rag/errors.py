"""The errors a user can meet, each with the exit code that the command line gives it."""

from __future__ import annotations

from pathlib import Path


class LRP4RAGError(Exception):
    """Something failed while the input was fine. The command line exits with 1."""

    exit_code = 1


class InputError(LRP4RAGError):
    """Bad usage or bad input. The message names file, line and field where they are known.

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
        self.path, self.line, self.field = path, line, field
        where = [] if path is None else [str(path)]
        where += [] if line is None else [f"line {line}"]
        where += [] if field is None else [f"field '{field}'"]
        super().__init__(f"{', '.join(where)}: {message}" if where else message)


class RelevanceError(LRP4RAGError):
    """Relevance could not be computed (NaN or Inf in a layer, a patch that changed the logits)."""


class LRP4RAGWarning(UserWarning):
    """Something a user should know that does not stop the work."""

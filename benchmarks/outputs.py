"""An option of the benchmarks that names a file to be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrp4rag.errors import InputError
from lrp4rag.files import check_output


class OutputFile(click.ParamType[Path]):
    """It is looked at before anything is measured: that may take hours."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            return check_output(value)
        except InputError as error:
            self.fail(str(error), param, ctx)

"""The figures of the evaluation: each module measures (a frozen record), tabulates, and draws one kind.

A drawing function returns a `Figure` that belongs to no window and to no global state; `save` writes it as
PNG and SVG, `save_table` its numbers as CSV.
"""

from lrp4rag.experiments.figures.style import save, save_table

__all__ = ["save", "save_table"]

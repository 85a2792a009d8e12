"""How figures of the research are drawn and written: `style` (theme, panels, files), `results` (metrics of
cross-validation) and `cost` (quality against cost).

A drawing function takes plain numbers and returns a `Figure` that belongs to no window and to no global
state; `save` writes it as PNG and SVG, `save_table` its numbers as CSV.
"""

from experiments.figures.style import save, save_table

__all__ = ["save", "save_table"]

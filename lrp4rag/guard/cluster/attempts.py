"""How often blocks of rows were begun and not ended. A process of its own keeps this, which needs no model:
this file imports nothing."""


class Attempts:
    """Counts by block."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def begin(self, block: int) -> int:
        """Returns how often it was begun, this time included."""
        self._times[block] = self._times.get(block, 0) + 1
        return self._times[block]

    def end(self, block: int) -> None:
        self._times.pop(block, None)

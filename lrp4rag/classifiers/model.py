"""`Model`: what a detector does to one response. The kinds of detector differ in this alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

from numpy.typing import NDArray

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.verdict import Assessment, Judgement, Reason
from lrp4rag.features.parts import RELEVANCE
from lrp4rag.features.record import Record
from lrp4rag.features.replay import RelevanceReplay, Replay
from lrp4rag.lrp.flow import Flow
from lrp4rag.reader.reader import Reader

Arrays = Mapping[str, NDArray[Any]]


class Model(Protocol):
    """A kind of detector, chosen once: by `FittedDetector.load`, from the kind of the card's input.

    A new kind is a subclass of this, which says how to `assess` a record; a subclass of `card.ModelInput`,
    which says what the card tells of it; and a line in `folder.MODELS`, so that it can be loaded.
    """

    dtype_matters: ClassVar[bool] = False
    """Whether a reader in another dtype than in training deserves a warning."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it reads (`features.parts`)."""
        return (RELEVANCE,)

    @property
    def plain(self) -> bool:
        """Whether it reads what plain passes tell, and no relevance: outside of relevance mode."""
        return False

    def replay(self, reader: Reader, flow: Flow) -> Replay:
        """What reads the records that it assesses, where they have relevance."""
        return RelevanceReplay(reader, flow, self.needs)

    @abstractmethod
    def assess(self, record: Record) -> Assessment:
        """Raises `InputError` where the record lacks what the model reads."""

    def reasons(self, record: Record, judgement: Judgement) -> tuple[Reason, ...]:
        """The features that moved the judgement most, strongest first."""
        return ()

    def arrays(self) -> Arrays:
        """Everything that was learned and is not in the card; `load` reads it back."""
        return {}

    @classmethod
    def load(cls, card: Card, arrays: Arrays) -> Self:
        """Raises `InputError`, `KeyError`, `RuntimeError`, `TypeError` or `ValueError` for arrays of another
        model."""
        return cls()

"""Layer-wise Relevance Propagation: rules, composites, and relevance in both directions."""

from lrp4rag.lrp.attribute import attribute
from lrp4rag.lrp.composites import ATTNLRP, COMPOSITES, CP_LRP, PAPER, Composite
from lrp4rag.lrp.propagate import Flow, relevance_mode
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.lrp.resample import resample

__all__ = [
    "ATTNLRP",
    "COMPOSITES",
    "CP_LRP",
    "PAPER",
    "Composite",
    "Flow",
    "Relevance",
    "attribute",
    "relevance_mode",
    "resample",
]

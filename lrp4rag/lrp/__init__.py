"""Layer-wise Relevance Propagation: rules, composites, and relevance in both directions."""

from lrp4rag.lrp.attribution import attribute
from lrp4rag.lrp.composites import ATTNLRP, COMPOSITES, CP_LRP, PAPER, Composite
from lrp4rag.lrp.conservation import check_conservation
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.readout import TARGETS, Target
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.lrp.resampling import resample
from lrp4rag.lrp.streaming import recording, stream

__all__ = [
    "ATTNLRP",
    "COMPOSITES",
    "CP_LRP",
    "PAPER",
    "TARGETS",
    "Composite",
    "Flow",
    "Relevance",
    "Target",
    "attribute",
    "check_conservation",
    "recording",
    "relevance_mode",
    "resample",
    "stream",
]

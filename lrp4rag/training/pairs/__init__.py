"""Minimal pairs by rules: copies of faithful responses with a fault in them, and in other words."""

from lrp4rag.training.pairs.corrupt import KINDS as KINDS
from lrp4rag.training.pairs.corrupt import families_of as families_of
from lrp4rag.training.pairs.corrupt import pairs_of as pairs_of

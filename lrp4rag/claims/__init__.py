"""Typed values of texts that can be compared: quantities, dates, names, words with an opposite."""

from lrp4rag.claims.find import find_values as find_values
from lrp4rag.claims.value import Kind as Kind
from lrp4rag.claims.value import Value as Value
from lrp4rag.claims.value import agree as agree
from lrp4rag.claims.value import comparable as comparable

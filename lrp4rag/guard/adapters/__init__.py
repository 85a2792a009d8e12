"""The guardrail inside other libraries, each in a module of its own name: importing one imports its library.

`guard` and `stream` are what all of them share.
"""

from lrp4rag.guard.adapters.guard import Guard as Guard
from lrp4rag.guard.adapters.guard import Guarded as Guarded

"""The reader: the model that replays a response, loaded, identified, and its view of an example."""

from lrp4rag.reader.encoding import Encoded, encode
from lrp4rag.reader.identity import ReaderIdentity
from lrp4rag.reader.reader import Reader, load_reader
from lrp4rag.reader.weights import DEFAULT_READER

__all__ = ["DEFAULT_READER", "Encoded", "Reader", "ReaderIdentity", "encode", "load_reader"]

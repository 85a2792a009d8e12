"""LlamaIndex: nodes pass the retrieval gate, answers are judged while they are written, and evaluated.

pip install 'lrp4rag[llama-index]'
python examples/adapters/llama_index_engine.py
"""

from llama_index.core import get_response_synthesizer
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from lrp4rag.guard.adapters.llama_index import (
    GroundedEvaluator,
    JudgedQueryEngine,
    RetrievalGatePostprocessor,
)

OLD = {"title": "Leave policy", "version": "2.8", "expires": "2023-12-31"}
NEW = {"title": "Leave policy", "version": "3.1", "effective": "2024-01-01"}
NODES = [
    NodeWithScore(node=TextNode(text="Parental leave is 12 weeks.", metadata=OLD), score=0.92),
    NodeWithScore(node=TextNode(text="Parental leave is 16 weeks, paid in full.", metadata=NEW), score=0.90),
    NodeWithScore(node=TextNode(text="The canteen opens at noon."), score=0.31),
]
ANSWER = "Parental leave is 16 weeks. It can be taken twice a year at any age."
QUESTION = "How long is parental leave?"


# Put your retriever and your model in the place of these two.
class Retriever(BaseRetriever):
    def _retrieve(self, query_bundle):
        return NODES


class Model(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata(model_name="canned")

    def complete(self, prompt, formatted=False, **_):
        return CompletionResponse(text=ANSWER)

    def stream_complete(self, prompt, formatted=False, **_):
        for end in range(1, len(ANSWER) + 1):
            yield CompletionResponse(text=ANSWER[:end], delta=ANSWER[end - 1])


gate = RetrievalGatePostprocessor()
for number, why in gate.decide(NODES, QUESTION).dropped:
    print(f"dropped: node {number + 1}, {why}")

engine = JudgedQueryEngine(
    RetrieverQueryEngine(
        Retriever(),
        response_synthesizer=get_response_synthesizer(llm=Model(), streaming=True),
        node_postprocessors=[gate],
    )
)
response = engine.query(QUESTION)
response.print_response_stream()  # sentence by sentence
print(f"\ndecision: {response.metadata['lrp4rag']['action']}, {response.metadata['lrp4rag']['reason']}")

result = GroundedEvaluator().evaluate(QUESTION, "Parental leave is 18 weeks.", [NODES[1].get_content()])
print(f"passing: {result.passing}, score {result.score:.2f}\n{result.feedback}")

"""A Haystack pipeline that streams judged sentences only, and a component that judges replies.

pip install 'lrp4rag[haystack]'
python examples/adapters/haystack_pipeline.py
"""

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import MockChatGenerator
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from lrp4rag.guard.adapters.haystack import AnswerJudge, JudgedChatGenerator

QUESTION = "How tall is the tower of the Marlow lighthouse?"
TEMPLATE = "{% for one in documents %}{{ one.content }}\n{% endfor %}\nQuestion: {{ query }}"

store = InMemoryDocumentStore()
store.write_documents(
    [
        Document(content="The tower of the Marlow lighthouse is 31 metres tall."),
        Document(content="Gull Island is home to a colony of about 2,000 puffins."),
    ]
)

# Put your generator in the place of this one.
model = MockChatGenerator("The tower is 31 metres tall. It was designed by Robert Stevenson in 1850.")

pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store))
pipeline.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(TEMPLATE)], required_variables="*"))
pipeline.add_component("model", JudgedChatGenerator(model))
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("retriever.documents", "model.documents")
pipeline.connect("prompt.prompt", "model.messages")


def show(chunk):
    print(chunk.content, end="", flush=True)


found = pipeline.run(
    {
        "retriever": {"query": QUESTION},
        "prompt": {"query": QUESTION},
        "model": {"query": QUESTION, "streaming_callback": show},
    }
)
decision = found["model"]["replies"][0].meta["lrp4rag"]
print(f"\ndecision: {decision['action']}, {decision['reason']}")

judge = AnswerJudge()  # behind a generator that does not stream: connect its replies
judged = judge.run(QUESTION, store.filter_documents(), ["The tower is 41 metres tall."])
print(f"judged:   {judged['decisions'][0]['action']}: {judged['replies'][0].text}")

"""A LangChain chain whose answer is judged, whole and while it is written.

pip install 'lrp4rag[langchain]'
python examples/adapters/langchain_chain.py
"""

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from lrp4rag.guard.adapters.langchain import AnswerJudge

DOCUMENTS = [
    Document("The tower of the Marlow lighthouse is 31 metres tall.", metadata={"title": "Lighthouses"}),
    Document("Gull Island is home to a colony of about 2,000 puffins.", metadata={"title": "Gull Island"}),
]

# Put your retriever and your model in the place of these two.
retriever = RunnableLambda(lambda question: DOCUMENTS)
model = FakeListChatModel(
    responses=["The tower is 31 metres tall. It was designed by Robert Stevenson in 1850."]
)

prompt = ChatPromptTemplate.from_template("{documents}\n\nQuestion: {question}")
answer = prompt | model | StrOutputParser()
found = {"documents": retriever, "question": RunnablePassthrough()}
chain = found | RunnablePassthrough.assign(answer=answer) | AnswerJudge()

asked = "How tall is the tower of the Marlow lighthouse?"

message = chain.invoke(asked)
decision = message.response_metadata["lrp4rag"]
print(f"whole:    {decision['action']}, {decision['reason']}: {message.content}")

print("streamed: ", end="", flush=True)
for chunk in chain.stream(asked):  # a chunk for each sentence, when it has ended and is judged
    print(chunk.content, end="", flush=True)
print()

"""OpenAI's client, streaming through the server: whatever speaks to OpenAI does so too.

pip install 'lrp4rag[serve]' openai
lrp4rag serve --demo                                        # prints a token
LRP4RAG_TOKEN=… python examples/adapters/openai_client.py
"""

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("LRP4RAG_URL", "http://127.0.0.1:8000/v1"), api_key=os.environ["LRP4RAG_TOKEN"]
)
passages = ["The tower of the Marlow lighthouse is 31 metres tall.", "Gull Island is home to 2,000 puffins."]
stream = client.chat.completions.create(
    model="any",
    stream=True,
    messages=[{"role": "user", "content": "How tall is the tower of the Marlow lighthouse?"}],
    extra_body={"lrp4rag": {"passages": passages}},
)
decisions = []
for chunk in stream:  # a chunk for each sentence, when it has ended and is judged
    print(chunk.choices[0].delta.content or "", end="", flush=True)
    decisions.append((chunk.model_extra or {}).get("lrp4rag"))
print(f"\ndecision: {decisions[-1]['action']}, {decisions[-1]['reason']}")

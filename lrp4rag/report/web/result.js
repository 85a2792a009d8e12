"use strict";
// What came of a question: the decision, the answer beside its passages, numbers, and what a person says of it.
(() => {
  const { el, banner, figures, view, empty, ofVerdict, sentenceOf, call, events } = window.lrp4rag;

  // Of a reply of /v1/judge to what was asked.
  function judged(request, reply) {
    const judgement = { ...reply, message: reply.shown === request.response ? "" : reply.shown };
    const shown = view(ofVerdict(request.question, request.passages, reply.verdict));
    return el("div", { class: "result" }, banner(judgement), shown.root, opinion(reply.decision.id), figures(judgement));
  }

  // An answer of the upstream, shown sentence by sentence while it comes, in the `container`.
  async function streamed(request, container, { model, signal, progress }) {
    const shownModel = { ...empty(request.question, request.passages), streaming: true };
    const shown = view(shownModel);
    const head = el("div");
    const foot = el("div");
    container.replaceChildren(el("div", { class: "result" }, head, shown.root, foot));
    const body = {
      model, stream: true, messages: [{ role: "user", content: request.question }], lrp4rag: { passages: request.passages },
    };
    let whole = null, message = "";
    for await (const event of events("v1/chat/completions", { body, signal })) {
      const content = event.choices?.[0]?.delta?.content ?? "";
      const record = event.lrp4rag;
      if (record?.faithfulness !== undefined) whole = record;
      else if (record?.rule) [message, whole] = [content.trim() || message, record];
      else if (record?.id) {
        sentenceOf(shownModel, content, record);
        shown.more();
        progress(shownModel.sentences.length);
      } else if (content) {
        shownModel.chars.push(...window.lrp4rag.chars(content));
      }
    }
    shownModel.streaming = false;
    shown.more();
    shown.first();
    if (whole) {
      const judgement = { decision: whole, findings: whole.findings ?? [], unavailable: whole.unavailable, message, faithfulness: whole.faithfulness, fact_score: whole.fact_score };
      head.append(banner(judgement, { whole: true }));
      foot.append(opinion(whole.id), figures(judgement));
    }
    return head;
  }

  // What a user says of the answer: a record of the audit log, and a label to learn from.
  function opinion(id) {
    const status = el("span", { role: "status", class: "soft" });
    const say = (said) => async () => {
      try {
        await call("v1/feedback", { body: { decision: id, said } });
        status.textContent = "Thank you: it is recorded.";
      } catch (error) {
        status.textContent = error.message;
      }
    };
    return el(
      "p",
      { class: "opinion" },
      el("span", { class: "soft" }, "Is the answer right? "),
      el("button", { type: "button", class: "quiet", onclick: say("grounded") }, "It is right"),
      " ",
      el("button", { type: "button", class: "quiet", onclick: say("hallucinated") }, "It is wrong"),
      " ",
      status,
    );
  }

  Object.assign(window.lrp4rag, { judged, streamed });
})();

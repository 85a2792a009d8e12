"use strict";
// What came of a question: the decision, the answer beside its passages, numbers, and what a person says of it.
(() => {
  const { el, banner, figures, view, empty, ofVerdict, sentenceOf, call, events } = window.lrp4rag;

  // Of a reply of /v1/judge to what was asked.
  function judged(asked, reply) {
    const told = { ...reply, message: reply.shown === asked.response ? "" : reply.shown };
    const shown = view(ofVerdict(asked.question, asked.passages, reply.verdict));
    return el("div", { class: "result" }, banner(told), shown.root, opinion(reply.decision.id), figures(told));
  }

  // An answer of the upstream, shown sentence by sentence while it comes. `place` gets it at once.
  async function streamed(asked, place, { model, signal, progress }) {
    const shownModel = { ...empty(asked.question, asked.passages), streaming: true };
    const shown = view(shownModel);
    const head = el("div");
    const foot = el("div");
    place.replaceChildren(el("div", { class: "result" }, head, shown.root, foot));
    const body = {
      model, stream: true, messages: [{ role: "user", content: asked.question }], lrp4rag: { passages: asked.passages },
    };
    let whole = null, message = "";
    for await (const event of events("v1/chat/completions", { body, signal })) {
      const content = event.choices?.[0]?.delta?.content ?? "";
      const told = event.lrp4rag;
      if (told?.faithfulness !== undefined) whole = told;
      else if (told?.rule) [message, whole] = [content.trim() || message, told];
      else if (told?.id) {
        sentenceOf(shownModel, content, told);
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
      const told = { decision: whole, findings: whole.findings ?? [], unavailable: whole.unavailable, message, faithfulness: whole.faithfulness, fact_score: whole.fact_score };
      head.append(banner(told, { whole: true }));
      foot.append(opinion(whole.id), figures(told));
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

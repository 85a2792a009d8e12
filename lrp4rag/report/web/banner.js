"use strict";
// What is done with the answer, and why, in a sentence; and the numbers behind it, for experts.
(() => {
  const { el, percent, clipped, toneOf, decisionWords, wouldWords, verdictWords, faultOf, news, foundWords } = window.lrp4rag;

  // Of an answer with which nothing was done: its fault, or else the verdict.
  function faultWords(model, verdict, decision) {
    const [title, reason] = verdictWords(verdict);
    const fault = faultOf(model, verdict, decision);
    const words = verdict.hallucinated === null ? reason : `The detector's verdict: ${title.toLowerCase()}.`;
    return fault === null ? [title, reason] : [fault, words];
  }

  // `judgement`: decision { action, reason } or null, verdict, findings, message, unavailable; all of them optional. With
  // `undone`, a model of the answer: nothing was done with it, and the decision is what would be.
  function banner(judgement, { level = "h2", whole = false, undone = null } = {}) {
    const { decision, verdict } = judgement;
    const [title, reason] = undone ? faultWords(undone, verdict, decision) : decision ? decisionWords(decision) : verdictWords(verdict ?? {});
    const undecided = undone && verdict.hallucinated === null; // neither good nor bad, whatever would be done
    const outcome = undecided ? "mark" : decision?.action ?? (verdict?.hallucinated ? "withhold" : verdict?.hallucinated === false ? "serve" : "mark");
    const findings = news(judgement.findings ?? []);
    const unlike = (verdict?.unlike ?? []).map((deviation) => deviation.words);
    return el(
      "div",
      { class: `banner ${toneOf(outcome)}` },
      el(level, { class: "done", tabindex: -1 }, whole ? "As a whole: " : "", title),
      el("p", { class: "reason" }, reason),
      undone && decision ? el("p", { class: "soft would" }, wouldWords(decision, reason)) : null,
      verdict?.calibrated === false ? el("p", { class: "soft" }, "The texts alone were compared: no detector was trained for this reader.") : null,
      unlike.length ? el("ul", { class: "found-list" }, ...unlike.map((words) => el("li", {}, words))) : null,
      findings.length ? el("ul", { class: "found-list" }, ...findings.map((finding) => el("li", {}, el("bdi", {}, foundWords(finding))))) : null,
      Object.keys(judgement.unavailable ?? {}).map((name) => el("p", { class: "soft" }, `The check “${name}” did not finish.`)),
      judgement.message
        ? el("details", {}, el("summary", {}, `What the reader of the answer ${undone ? "would be" : "is"} told`), el("blockquote", { class: "text", dir: "auto" }, judgement.message))
        : null,
    );
  }

  const table = (name, heads, rows) =>
    el(
      "div",
      { class: "scrolls", tabindex: 0, role: "region", "aria-label": name },
      el(
        "table",
        {},
        el("caption", {}, name),
        el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", { dir: "auto" }, cell ?? ""))))),
      ),
    );

  const signed = (value) => (value === null || value === undefined ? "" : `${value < 0 ? "−" : "+"}${Math.abs(value).toPrecision(3)}`);

  // What experts ask for, of a verdict as `lrp4rag analyse --json` prints it and of what a policy makes of it; with
  // `brief`, nothing of the run.
  function figures(judgement, { brief = false } = {}) {
    const { verdict = {}, decision } = judgement;
    const run = [
      ["reader", verdict.reader?.name],
      ["composite", verdict.composite],
      ["tokens", verdict.prompt_tokens && `${verdict.prompt_tokens} of the prompt, ${verdict.response_tokens} of the answer`],
      ["seconds", verdict.seconds && Object.entries(verdict.seconds).map(([name, value]) => `${name} ${value?.toFixed(1)}`).join(", ")],
    ];
    const facts = [
      ["probability of a hallucination", verdict.probability?.toFixed(3)],
      ["called so from", verdict.threshold?.toFixed(3)],
      ["sentences supported (faithfulness)", percent(judgement.faithfulness)],
      ["facts grounded", percent(judgement.fact_score)],
      ["rule of the policy", decision?.rule],
      ["policy", decision?.policy],
      ["decision", decision?.id],
      ...(brief ? [] : run),
    ].filter(([, value]) => value);
    const sentences = (verdict.sentences ?? []).map((sentence, k) => [
      k + 1, sentence.text, sentence.status, sentence.probability?.toFixed(2), sentence.passage ? `${sentence.passage} (${signed(sentence.by_passage[sentence.passage - 1])})` : "",
      sentence.nearest && `${sentence.nearest.passage} (${percent(sentence.nearest.similarity)})`,
    ]);
    const values = (verdict.spans ?? []).flatMap((span) => span.contradictions).map((contradiction) => [
      contradiction.text, `${contradiction.passage}: ${clipped(contradiction.passage_text)}`, `${contradiction.passage_start}–${contradiction.passage_end}`, signed(contradiction.margin), signed(contradiction.relevance),
    ]);
    const reasons = (verdict.reasons ?? []).map((reason) => reason.words);
    const checks = (judgement.findings ?? []).map((finding) => [finding.check, finding.kind, foundWords(finding)]);
    return el(
      "section",
      { class: "expert figures", "aria-label": "Numbers" },
      el("dl", {}, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("bdi", {}, value))))),
      reasons.length ? [el("h3", {}, "What moved the verdict most"), el("ul", {}, ...reasons.map((words) => el("li", {}, words)))] : [],
      sentences.length
        ? table("Sentences", ["#", "Sentence", "Status", "P(hallucinated)", "Most relevance (passage, logits)", "Most words (passage)"], sentences)
        : [],
      values.length
        ? table("Contradicted values", ["Answer", "Passage", "Characters", "Margin (nats)", "Contrastive relevance (logits)"], values)
        : [],
      checks.length ? table("What checks found", ["Check", "Kind", "Found"], checks) : [],
    );
  }

  // The button that shows what has the class "expert".
  function expertButton() {
    const button = el("button", { type: "button", class: "quiet", "aria-pressed": "false" }, "Expert view");
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      document.documentElement.toggleAttribute("data-expert", on);
      window.dispatchEvent(new Event("resize"));
    });
    return button;
  }

  Object.assign(window.lrp4rag, { banner, figures, expertButton, table });
})();

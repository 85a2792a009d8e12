"use strict";
// The page of one analysis: what it shows is in the element "data".
(() => {
  const { banner, figures, expertButton, ofVerdict, view } = window.lrp4rag;
  const { question, passages, verdict } = JSON.parse(document.getElementById("data").textContent);
  const decision = verdict.decision;
  const judgement = {
    decision, verdict, findings: decision?.findings, message: decision?.message, unavailable: decision?.unavailable,
    faithfulness: decision?.faithfulness, fact_score: decision?.fact_score,
  };
  document.documentElement.classList.add("scripted");
  const model = ofVerdict(question, passages, verdict);
  document.getElementById("head").append(banner(judgement, { level: "h1", undone: model }), expertButton());
  document.getElementById("view").append(view(model).root);
  document.getElementById("figures").append(figures(judgement, { brief: true }));
})();

"use strict";
// The page of one analysis: what it shows is in the element "data".
(() => {
  const { banner, figures, expertButton, ofVerdict, view } = window.lrp4rag;
  const { question, passages, verdict } = JSON.parse(document.getElementById("data").textContent);
  const decision = verdict.decision;
  const told = {
    decision, verdict, findings: decision?.findings, message: decision?.message, unavailable: decision?.unavailable,
    faithfulness: decision?.faithfulness, fact_score: decision?.fact_score,
  };
  document.documentElement.classList.add("scripted");
  document.getElementById("head").append(banner(told, { level: "h1" }), expertButton());
  document.getElementById("view").append(view(ofVerdict(question, passages, verdict)).root);
  document.getElementById("figures").append(figures(told, { brief: true }));
})();

"use strict";
// What the page says, in one place.
(() => {
  const DONE = {
    serve: "Served",
    mark: "Served with a warning",
    disclose: "Served with what the passages say",
    escalate: "Held for a reviewer",
    withhold: "Withheld",
  };
  const WOULD = {
    serve: "serve it",
    mark: "serve it with a warning",
    disclose: "serve it with what the passages say",
    escalate: "hold it for a reviewer",
    withhold: "withhold it",
  };
  const WITHHELD = new Set(["escalate", "withhold"]); // by which nobody sees what was written
  const toneOf = (action) => (action === "serve" ? "good" : WITHHELD.has(action) ? "bad" : "care");
  const WHY = {
    grounded: "All that it says looks supported by the passages.",
    "states nothing": "It states nothing that a passage could support.",
    contradicted: "A passage says something else.",
    unsupported: "Not all that it says looks supported by the passages.",
    suspect: "Parts of it do not look supported by the passages.",
    "insufficient evidence": "Too little of it looks supported by the passages.",
    "knowledge gap": "Most of what it says does not look supported by the passages.",
    conflict: "The passages contradict each other on what it says.",
    "outdated source": "It rests on a document that does not hold any more.",
    "fabricated citation": "It cites a document that is not among the passages.",
    "misattributed citation": "It cites a passage that does not support the sentence.",
    "disguised text": "It reads otherwise than it looks: some of its characters are disguised.",
    "planted instructions": "It follows an order to models that stands in a passage.",
    "omitted condition": "It leaves out a condition that a passage has.",
    "unlike training data": "It is unlike what the detector learned from, so there is no verdict.",
    unavailable: "It could not be checked.",
  };
  // Of sentences: those that are suspect, and all that are worth a look, the worst first, as a summary counts them.
  const FLAGGED = ["contradicted", "unsupported"];
  const DOUBTED = { contradicted: "contradicted", unsupported: "without support", unjudged: "not judged" };

  // Kinds of findings that are no news, and checks whose news the sentences tell already.
  const QUIET = new Set(["grounded", "verified", "no minimum", "history"]);
  const TOLD = new Set(["facts"]);

  // What a check found, where only its kind is told: of a streamed answer, and of a record.
  const FOUND = {
    "retrieval: null": "No passage is fit to answer from",
    "retrieval: empty": "A passage is empty",
    "retrieval: expired": "A passage has expired",
    "retrieval: not yet effective": "A passage does not hold yet",
    "retrieval: superseded": "A newer version of a passage is there too",
    "retrieval: below minimum": "A passage was retrieved with too low a score",
    "retrieval: duplicate": "Passages repeat each other",
    "retrieval: middle": "The best passages stand in the middle, where models overlook them",
    "retrieval: unreadable date": "A date of a passage cannot be read",
    "conflicts: conflict": "Passages contradict each other",
    "outdated: outdated": "It rests on a document that does not hold any more",
    "citations: misattributed": "A citation does not support its sentence",
    "citations: fabricated": "A citation is of nothing that was retrieved",
    "disguise: disguised": "Some of its characters are disguised",
    "planted: planted": "It follows an order to models in a passage",
    "omissions: omitted": "It leaves out a condition of a passage",
  };

  // How doubtful a sentence is, as a step of colour, from 0.
  const STEPS = [0.1, 0.25, 0.5];
  const step = (probability) => STEPS.filter((edge) => probability >= edge).length;
  const DOUBT = ["looks supported", "a little doubtful", "doubtful", "very doubtful"];
  const CLOSE = 0.4; // from which on what the verdict calls supported is a little doubtful
  // What the verdict calls supported is coloured as that, whatever is left of doubt.
  const stepOf = (state, probability) => (FLAGGED.includes(state) ? Math.max(step(probability), 2) : Number(probability >= CLOSE));

  // Of a verdict without a decision.
  function verdictWords(verdict) {
    if (verdict.threshold === null || verdict.threshold === undefined) {
      return ["What the answer rests on", "No detector was asked, so nothing here is a verdict."];
    }
    if (verdict.abstained) return ["No verdict", WHY["unlike training data"]];
    if (verdict.hallucinated) {
      const contradicted = verdict.sentences?.some((sentence) => sentence.status === "contradicted");
      return ["Likely hallucinated", WHY[contradicted ? "contradicted" : "unsupported"]];
    }
    if (verdict.hallucinated === null) return ["No verdict", WHY["states nothing"]];
    return ["Looks supported", WHY.grounded];
  }

  const reasonOf = (decision) => (decision.rule === "rules.null" ? "No passage is fit to answer from." : WHY[decision.reason] ?? decision.reason);

  // Title and reason of what is done with an answer.
  const decisionWords = (decision) => [DONE[decision.action] ?? decision.action, reasonOf(decision)];

  // What a policy would do with an answer that it was not asked about yet, and why unless that is the `verdictReason`.
  function wouldWords(decision, verdictReason) {
    const reason = reasonOf(decision);
    const why = reason === verdictReason ? "." : `: ${reason.replace(/^./u, (char) => char.toLowerCase())}`;
    return `The policy would ${WOULD[decision.action] ?? decision.action}${why}`;
  }

  const news = (findings) => findings.filter((finding) => !QUIET.has(finding.kind) && !TOLD.has(finding.check));

  // In words: its own, or those of its kind with the passages, counted from 1.
  function foundWords(finding) {
    if (finding.words) return finding.words;
    const words = FOUND[`${finding.check}: ${finding.kind}`] ?? `${finding.check}: ${finding.kind}`;
    const passages = finding.passages?.length ? ` (passage ${finding.passages.join(", ")})` : "";
    return `${words}${passages}.`;
  }

  // Of a record, which has how many there are of each kind.
  const findingsOf = (counts) =>
    Object.keys(counts ?? {}).map((name) => {
      const [check, kind] = name.split(": ");
      return { check, kind };
    });

  Object.assign(window.lrp4rag, { DONE, WITHHELD, toneOf, WHY, FLAGGED, DOUBTED, FOUND, foundWords, findingsOf, DOUBT, STEPS, step, stepOf, verdictWords, reasonOf, decisionWords, wouldWords, news });
})();

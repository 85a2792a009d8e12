"use strict";
// In words, why a sentence of an answer is coloured as it is, and what of it is wrong.
(() => {
  const { el, clipped, percent, WHY, FLAGGED, reasonOf, textOf, quoteOf, contradictionsIn, spansIn, stateOf, restsOn } = window.lrp4rag;
  const SEEN = new Set(["grounded", "states nothing", ...FLAGGED, "suspect", "insufficient evidence"]); // reasons that the sentence itself tells better

  const UNJUDGED = new Set(["unlike training data", "unavailable"]); // those that are no fault of the answer

  // In words, why a sentence is coloured as it is.
  function why(model, sentence) {
    const state = stateOf(model, sentence);
    const near = restsOn(sentence);
    if (state === "contradicted") {
      const told = contradictionsIn(model, sentence).map((one) => {
        const quote = `Passage ${one.passage} says “${clipped(quoteOf(model, one))}”`;
        return one.start === null ? `${quote} in its place.` : `${quote}, not “${textOf(model, one.start, one.end)}”.`;
      });
      return [sentence.withheld ? "This sentence is withheld." : "", ...told].filter(Boolean).join(" ");
    }
    if (sentence.reason && !SEEN.has(sentence.reason)) {
      return `${sentence.withheld ? "This sentence is withheld. " : ""}${WHY[sentence.reason] ?? sentence.reason}`;
    }
    if (state === "nothing") return "This states nothing that a passage could support.";
    if (state === "unjudged") return "This was not judged.";
    if (state === "unsupported") {
      const lead = sentence.withheld ? "This sentence is withheld: nothing" : "Nothing";
      const closest = near ? ` Passage ${near.passage} comes closest.` : "";
      const others = contradictionsIn(model, sentence)
        .filter((one) => one.start !== null)
        .map((one) => ` In place of “${textOf(model, one.start, one.end)}”, passage ${one.passage} has “${clipped(quoteOf(model, one))}”.`);
      return `${lead} in the passages supports this.${closest}${others.join("")}`;
    }
    if (!near) return "Nothing speaks against it, but no passage has many of its words.";
    return `Looks supported: it rests on passage ${near.passage}.`;
  }

  // The same in a line of a list.
  function issue(model, sentence, state) {
    const text = clipped(textOf(model, sentence.start, sentence.end));
    if (state === "contradicted") {
      return contradictionsIn(model, sentence).map((one) =>
        el(
          "span",
          { class: "versus", "data-number": one.number },
          one.start === null ? "A sentence that is withheld" : el("b", {}, `“${clipped(textOf(model, one.start, one.end))}”`),
          ` is contradicted: passage ${one.passage} says `,
          el("ins", {}, clipped(quoteOf(model, one))),
        ),
      );
    }
    if (sentence.withheld) return why(model, sentence);
    const parts = spansIn(model, sentence).map((one) =>
      textOf(model, Math.max(one.start, sentence.start), Math.min(one.end, sentence.end)),
    );
    const quoted = el("b", {}, `“${parts.length ? clipped(parts.join(" … ")) : text}”`);
    if (sentence.reason && !SEEN.has(sentence.reason)) return [quoted, ` ${why(model, sentence)}`];
    return [quoted, state === "unjudged" ? " was not judged" : " has no support in the passages"];
  }

  function figuresOf(sentence) {
    const parts = [];
    if (sentence.probability !== null && sentence.probability !== undefined) {
      parts.push(`probability of a hallucination ${percent(sentence.probability)}`);
    }
    if (sentence.nearest) parts.push(`passage ${sentence.nearest.passage} has ${percent(sentence.nearest.similarity)} of its words`);
    if (sentence.passage) parts.push(`most relevance from passage ${sentence.passage}`);
    return parts.join("; ");
  }

  // What is wrong with an answer, as a headline; null where the detector and the policy found no fault.
  function faultOf(model, verdict, decision) {
    const of = (state) => (verdict.hallucinated ? model.sentences.filter((one) => stateOf(model, one) === state) : []);
    const [first, ...others] = of("contradicted").flatMap((one) => contradictionsIn(model, one));
    if (first) {
      const more = others.length ? ` (and ${others.length} more)` : "";
      return `Passage ${first.passage} says ${clipped(quoteOf(model, first), 60)}, not ${clipped(textOf(model, first.start, first.end), 60)}${more}`;
    }
    if (decision && !SEEN.has(decision.reason) && !UNJUDGED.has(decision.reason)) return reasonOf(decision).replace(/\.$/, "");
    const unsupported = of("unsupported");
    if (unsupported.length > 1) return `Nothing in the passages supports ${unsupported.length} of ${model.sentences.length} sentences`;
    return unsupported.length ? `Nothing in the passages supports “${clipped(textOf(model, unsupported[0].start, unsupported[0].end))}”` : null;
  }

  Object.assign(window.lrp4rag, { why, issue, figuresOf, faultOf });
})();

"use strict";
// In words, why a sentence of an answer is coloured as it is, and what of it is wrong.
(() => {
  const {
    el, clipped, percent, WHY, FLAGGED, reasonOf, textOf, quoteOf, contradictionsIn, spansIn, differencesIn, computedIn, stateOf,
    restsOn,
  } = window.lrp4rag;
  const SEEN = new Set(["grounded", "states nothing", ...FLAGGED, "suspect", "insufficient evidence"]); // reasons that the sentence itself tells better

  const UNJUDGED = new Set(["unlike training data", "unavailable"]); // those that are no fault of the answer

  // “12” = 7 + 5, computed from passage 1
  function followsWords(model, value) {
    const sign = value.kind === "rounded" ? "≈" : "=";
    return `“${clipped(textOf(model, value.start, value.end))}” ${sign} ${clipped(value.words)}, ${value.kind} from passage ${value.passage}`;
  }

  function differenceWords(difference) {
    const words = `“${clipped(difference.passage_text).replace(/\.$/u, "")}”`;
    if (difference.kind === "left out") return `It leaves out ${words} (passage ${difference.passage})`;
    if (difference.kind === "answered") return `It says that this is missing, and passage ${difference.passage} may have it: ${words}`;
    return `Passage ${difference.passage} says this of “${clipped(difference.subject ?? "")}”: ${words}`;
  }

  // What is said of a sentence beside its contradictions: a sentence each.
  const further = (model, sentence) =>
    [...differencesIn(model, sentence).map(differenceWords), ...computedIn(model, sentence).map((value) => followsWords(model, value))].map((words) => ` ${words}.`);

  // In words, why a sentence is coloured as it is.
  function why(model, sentence) {
    const state = stateOf(model, sentence);
    const near = restsOn(sentence);
    if (state === "contradicted") {
      const quotes = contradictionsIn(model, sentence).map((contradiction) => {
        const quote = `Passage ${contradiction.passage} says “${clipped(quoteOf(model, contradiction))}”`;
        return contradiction.start === null ? `${quote} in its place.` : `${quote}, not “${textOf(model, contradiction.start, contradiction.end)}”.`;
      });
      return [sentence.withheld ? "This sentence is withheld." : "", ...quotes].filter(Boolean).join(" ") + further(model, sentence).join("");
    }
    if (sentence.reason && !SEEN.has(sentence.reason)) {
      return `${sentence.withheld ? "This sentence is withheld. " : ""}${WHY[sentence.reason] ?? sentence.reason}`;
    }
    if (state === "nothing") return "This states nothing that a passage could support.";
    if (state === "unjudged") return "This was not judged.";
    if (state === "unsupported") {
      const answered = differencesIn(model, sentence).some((difference) => difference.kind === "answered");
      const lead = answered && !sentence.withheld ? "" : `${sentence.withheld ? "This sentence is withheld: n" : "N"}${lacking(model, sentence)} this.`;
      const closest = near ? ` Passage ${near.passage} comes closest.` : "";
      const alternatives = contradictionsIn(model, sentence)
        .filter((contradiction) => contradiction.start !== null)
        .map((contradiction) => ` In place of “${textOf(model, contradiction.start, contradiction.end)}”, passage ${contradiction.passage} has “${clipped(quoteOf(model, contradiction))}”.`);
      return [lead, closest, ...alternatives, ...further(model, sentence)].join("").trim();
    }
    const lead = near ? `Looks supported: it rests on passage ${near.passage}.` : "Nothing speaks against it, but no passage has many of its words.";
    return [lead, ...further(model, sentence)].join("");
  }

  // With an N before it. What can be computed has some support.
  const lacking = (model, sentence) => (computedIn(model, sentence).length ? "o passage says" : "othing in the passages supports");

  // The same in a line of a list.
  function issue(model, sentence, state) {
    const text = clipped(textOf(model, sentence.start, sentence.end));
    if (state === "contradicted") {
      return contradictionsIn(model, sentence).map((contradiction) =>
        el(
          "span",
          { class: "versus", "data-number": contradiction.number },
          contradiction.start === null ? "A sentence that is withheld" : el("b", {}, `“${clipped(textOf(model, contradiction.start, contradiction.end))}”`),
          ` is contradicted: passage ${contradiction.passage} says `,
          el("ins", {}, clipped(quoteOf(model, contradiction))),
        ),
      );
    }
    if (sentence.withheld) return why(model, sentence);
    const suspect = spansIn(model, sentence).map((span) =>
      textOf(model, Math.max(span.start, sentence.start), Math.min(span.end, sentence.end)),
    );
    const quoted = el("b", {}, `“${suspect.length ? clipped(suspect.join(" … ")) : text}”`);
    if (sentence.reason && !SEEN.has(sentence.reason)) return [quoted, ` ${why(model, sentence)}`];
    if (state === "unjudged") return [quoted, " was not judged"];
    const [difference] = differencesIn(model, sentence), [value] = computedIn(model, sentence);
    if (difference) return [quoted, ` ${differenceWords(difference)}`];
    return [quoted, value ? ` is said by no passage; ${followsWords(model, value)}` : " has no support in the passages"];
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
    const of = (state) => (verdict.hallucinated ? model.sentences.filter((sentence) => stateOf(model, sentence) === state) : []);
    const [first, ...rest] = of("contradicted").flatMap((sentence) => contradictionsIn(model, sentence));
    if (first) {
      const more = rest.length ? ` (and ${rest.length} more)` : "";
      return `Passage ${first.passage} says ${clipped(quoteOf(model, first), 60)}, not ${clipped(textOf(model, first.start, first.end), 60)}${more}`;
    }
    if (decision && !SEEN.has(decision.reason) && !UNJUDGED.has(decision.reason)) return reasonOf(decision).replace(/\.$/, "");
    const unsupported = of("unsupported");
    if (unsupported.length > 1) return `Nothing in the passages supports ${unsupported.length} of ${model.sentences.length} sentences`;
    if (!unsupported.length) return null;
    const [difference] = differencesIn(model, unsupported[0]);
    if (difference) return differenceWords(difference);
    return `N${lacking(model, unsupported[0])} “${clipped(textOf(model, unsupported[0].start, unsupported[0].end))}”`;
  }

  Object.assign(window.lrp4rag, { why, issue, figuresOf, faultOf });
})();

"use strict";
// What is shown of an answer, made of what the server, or a file, tells of it. Passages count from 1.
//
// An answer has its characters, sentences { start, end, probability, suspect, withheld, nearest, … }, and
// contradictions { start, end, passage, passage_start, passage_end, number }; start is null where the words are withheld.
(() => {
  const { chars, WITHHELD } = window.lrp4rag;
  const ENOUGH = 0.3; // the share of a sentence's words in a passage from which on it is said to rest on it

  function passagesOf(given) {
    return given.map((one, k) => {
      const text = typeof one === "string" ? one : one.text;
      return { number: k + 1, name: (typeof one === "string" ? null : one.id) ?? null, chars: chars(text) };
    });
  }

  function empty(question, passages) {
    return { question, passages: passagesOf(passages), chars: [], sentences: [], contradictions: [], spans: [], differences: [], computed: [] };
  }

  // The same value may be told by several spans.
  function numbered(found) {
    const known = new Map();
    for (const one of found) known.set([one.start, one.end, one.passage, one.passage_start].join(), one);
    const ordered = [...known.values()].sort((one, other) => one.start - other.start);
    return ordered.map((one, k) => ({ ...one, number: k + 1 }));
  }

  // Of a verdict, as `lrp4rag analyse --json` prints it.
  function ofVerdict(question, passages, verdict) {
    return {
      ...empty(question, passages),
      chars: chars(verdict.response),
      sentences: verdict.sentences,
      contradictions: numbered(verdict.spans.flatMap((span) => span.contradictions)),
      spans: verdict.spans,
      differences: verdict.differences ?? [],
      computed: verdict.computed ?? [],
    };
  }

  // Of the record of a decision, with the texts where they are kept.
  function ofRecord(record, written) {
    const passages = [];
    while (written[`passage ${passages.length + 1}`] !== undefined) {
      passages.push(written[`passage ${passages.length + 1}`]);
    }
    const evidence = record.evidence ?? { sentences: [], contradictions: [] };
    return {
      ...empty(written.question ?? "", passages),
      chars: chars(written.response ?? ""),
      sentences: evidence.sentences,
      contradictions: numbered(evidence.contradictions),
    };
  }

  // One more sentence of a stream: `text` is what was let out for it, `told` what came with it.
  function sentenceOf(model, text, told) {
    const start = model.chars.length;
    const body = text.trimEnd();
    const by = start - (told.start ?? start);
    const withheld = WITHHELD.has(told.action);
    const sentence = {
      ...told,
      start: start + chars(body).length - chars(body.trimStart()).length,
      end: start + chars(body).length,
      withheld,
      suspect: told.suspect ?? told.action !== "serve",
      contradictions: told.contradictions ?? [],
    };
    model.chars.push(...chars(text));
    for (const one of sentence.contradictions) {
      const place = withheld ? { start: null, end: null } : { start: one.start + by, end: one.end + by };
      model.contradictions.push({ ...one, ...place, of: sentence, number: model.contradictions.length + 1 });
    }
    model.sentences.push(sentence);
    return sentence;
  }

  const textOf = (model, start, end) => model.chars.slice(start, end).join("");
  const quoteOf = (model, one) =>
    model.passages[one.passage - 1]?.chars.slice(one.passage_start, one.passage_end).join("") ?? "";

  const contradictionsIn = (model, sentence) =>
    model.contradictions.filter((one) =>
      one.start === null ? one.of === sentence : one.start < sentence.end && one.end > sentence.start,
    );
  const spansIn = (model, sentence) =>
    model.spans.filter((one) => one.start < sentence.end && one.end > sentence.start);

  // What else passages have against a sentence, and its values that follow from a passage's.
  const startingIn = (all, sentence) => all.filter((one) => one.start >= sentence.start && one.start < sentence.end);
  const differencesIn = (model, sentence) => startingIn(model.differences, sentence);
  const computedIn = (model, sentence) => startingIn(model.computed, sentence);

  // "contradicted", "unsupported", "unjudged", "nothing" or "supported": by its status, which records of before do not have.
  function stateOf(model, sentence) {
    const known = { "not judged": "unjudged", "states nothing": "nothing" };
    if (sentence.status) return known[sentence.status] ?? sentence.status;
    if (contradictionsIn(model, sentence).length) return restsOn(sentence) ? "contradicted" : "unsupported";
    if (["unavailable", "unlike training data"].includes(sentence.reason)) return "unjudged";
    if (sentence.suspect || spansIn(model, sentence).length) return "unsupported";
    return sentence.probability === null || sentence.probability === undefined ? "unjudged" : "supported";
  }

  const restsOn = (sentence) => ((sentence.nearest?.similarity ?? ENOUGH) >= ENOUGH ? sentence.nearest : null) ?? null;

  Object.assign(window.lrp4rag, {
    empty, ofVerdict, ofRecord, sentenceOf, textOf, quoteOf, contradictionsIn, spansIn, differencesIn, computedIn, stateOf,
    restsOn,
  });
})();

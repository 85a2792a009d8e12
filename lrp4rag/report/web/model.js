"use strict";
// What is shown of an answer, made of what the server, or a file, tells of it. Passages count from 1.
//
// An answer has its characters, sentences { start, end, probability, suspect, withheld, nearest, … }, and
// contradictions { start, end, passage, passage_start, passage_end, number }; start is null where the words are withheld.
(() => {
  const { chars, WITHHELD } = window.lrp4rag;
  const ENOUGH = 0.3; // the share of a sentence's words in a passage from which on it is said to rest on it

  function passagesOf(passages) {
    return passages.map((passage, k) => {
      const text = typeof passage === "string" ? passage : passage.text;
      return { number: k + 1, name: (typeof passage === "string" ? null : passage.id) ?? null, chars: chars(text) };
    });
  }

  function empty(question, passages) {
    return { question, passages: passagesOf(passages), chars: [], sentences: [], contradictions: [], spans: [], differences: [], computed: [] };
  }

  // Several spans may have the same value.
  function numbered(contradictions) {
    const distinct = new Map();
    for (const contradiction of contradictions) distinct.set([contradiction.start, contradiction.end, contradiction.passage, contradiction.passage_start].join(), contradiction);
    const ordered = [...distinct.values()].sort((contradiction, next) => contradiction.start - next.start);
    return ordered.map((contradiction, k) => ({ ...contradiction, number: k + 1 }));
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

  // One more sentence of a stream: `text` is what was let out for it, `record` what came with it.
  function sentenceOf(model, text, record) {
    const start = model.chars.length;
    const body = text.trimEnd();
    const by = start - (record.start ?? start);
    const withheld = WITHHELD.has(record.action);
    const sentence = {
      ...record,
      start: start + chars(body).length - chars(body.trimStart()).length,
      end: start + chars(body).length,
      withheld,
      suspect: record.suspect ?? record.action !== "serve",
      contradictions: record.contradictions ?? [],
    };
    model.chars.push(...chars(text));
    for (const contradiction of sentence.contradictions) {
      const span = withheld ? { start: null, end: null } : { start: contradiction.start + by, end: contradiction.end + by };
      model.contradictions.push({ ...contradiction, ...span, of: sentence, number: model.contradictions.length + 1 });
    }
    model.sentences.push(sentence);
    return sentence;
  }

  const textOf = (model, start, end) => model.chars.slice(start, end).join("");
  const quoteOf = (model, contradiction) =>
    model.passages[contradiction.passage - 1]?.chars.slice(contradiction.passage_start, contradiction.passage_end).join("") ?? "";

  const contradictionsIn = (model, sentence) =>
    model.contradictions.filter((contradiction) =>
      contradiction.start === null ? contradiction.of === sentence : contradiction.start < sentence.end && contradiction.end > sentence.start,
    );
  const spansIn = (model, sentence) =>
    model.spans.filter((span) => span.start < sentence.end && span.end > sentence.start);

  // What else passages have against a sentence, and its values that follow from a passage's.
  const startingIn = (all, sentence) => all.filter((range) => range.start >= sentence.start && range.start < sentence.end);
  const differencesIn = (model, sentence) => startingIn(model.differences, sentence);
  const computedIn = (model, sentence) => startingIn(model.computed, sentence);

  // "contradicted", "unsupported", "unjudged", "nothing" or "supported": by its status, which records of before do not have.
  function stateOf(model, sentence) {
    const states = { "not judged": "unjudged", "states nothing": "nothing" };
    if (sentence.status) return states[sentence.status] ?? sentence.status;
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

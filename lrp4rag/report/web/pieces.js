"use strict";
// The texts of an answer and of its passages, in pieces that are marked.
(() => {
  const {
    el, visible, stretches, DOUBT, STEPS, textOf, contradictionsIn, spansIn, stateOf, restsOn,
  } = window.lrp4rag;
  const AROUND = 80; // characters that are quoted on either side of a value

  // A passage's text in stretches, with what contradicts the answer and what the sentence at hand rests on.
  function passageText(model, passage, sentence) {
    const contradicting = model.contradictions
      .filter((one) => one.passage === passage.number)
      .map((one) => ({ start: one.passage_start, end: one.passage_end, told: one }));
    const near = sentence && restsOn(sentence);
    const here = near && near.passage === passage.number;
    const rests = here ? [{ start: near.start, end: near.end, rests: true }] : [];
    const words = here ? (near.words ?? []).map(([start, end]) => ({ start, end, word: true })) : [];
    const mine = new Set(sentence ? contradictionsIn(model, sentence).map((one) => one.number) : []);
    return stretches(0, passage.chars.length, [...contradicting, ...rests]).map((part) => {
      const texts = stretches(part.start, part.end, words).map((piece) => {
        const text = passage.chars.slice(piece.start, piece.end).join("");
        return piece.inside.length ? el("span", { class: "word" }, text) : text;
      });
      const told = part.inside.filter((one) => one.told).map((one) => one.told);
      const inner = told.length ? [instead(told, part, mine, texts)] : texts;
      return part.inside.some((one) => one.rests) ? el("span", { class: `rests ${stateOf(model, sentence)}` }, ...inner) : inner;
    }).flat();
  }

  // What a passage has instead; it begins with the number of the first contradiction that begins there.
  function instead(told, part, mine, texts) {
    const attributes = {
      class: told.some((one) => mine.has(one.number)) ? "instead at-hand" : "instead",
      "data-join": told.map((one) => one.number).join(" "),
      "data-number": told.find((one) => one.passage_start === part.start)?.number,
    };
    return el("mark", attributes, ...texts);
  }

  // A sentence's text in stretches: suspect words, and values that a passage has otherwise.
  function sentenceText(model, sentence) {
    const told = contradictionsIn(model, sentence).filter((one) => one.start !== null);
    const spans = spansIn(model, sentence);
    const cut = (one) => ({ ...one, start: Math.max(one.start, sentence.start), end: Math.min(one.end, sentence.end) });
    const ranges = [
      ...told.map((one) => ({ ...cut(one), told: one })),
      ...spans.map((one) => ({ ...cut(one), suspect: true })),
    ];
    return stretches(sentence.start, sentence.end, ranges).map((part) => {
      const text = textOf(model, part.start, part.end);
      const wrong = part.inside.find((one) => one.told);
      if (wrong) {
        const number = wrong.start === part.start ? wrong.told.number : null;
        return el("mark", { class: "wrong", "data-join": wrong.told.number, "data-number": number }, text);
      }
      return part.inside.length ? el("span", { class: "suspect" }, text) : document.createTextNode(visible(text));
    });
  }

  // The passage's own words, where the passage itself may be out of sight.
  function quoteFor(model, sentence) {
    if (!sentence) return [];
    const told = stateOf(model, sentence) === "contradicted" ? contradictionsIn(model, sentence)[0] : null;
    const near = told ? (sentence.nearest?.passage === told.passage ? sentence.nearest : null) : restsOn(sentence);
    const passage = model.passages[(told ?? near)?.passage - 1];
    if (!passage) return [];
    const around = near ?? { start: told.passage_start - AROUND, end: told.passage_end + AROUND };
    const start = Math.max(0, Math.min(around.start, told?.passage_start ?? Infinity));
    const end = Math.min(passage.chars.length, Math.max(around.end, told?.passage_end ?? 0));
    const ranges = told ? [{ start: told.passage_start, end: told.passage_end }] : [];
    const words = stretches(start, end, ranges).map((part) => {
      const text = passage.chars.slice(part.start, part.end).join("");
      return part.inside.length ? el("ins", {}, text) : text;
    });
    return [el("blockquote", { dir: "auto" }, ...words), el("p", { class: "soft" }, `Passage ${passage.number}`)];
  }

  function legend() {
    const edges = [0, ...STEPS.map((edge) => 100 * edge), 100];
    return el(
      "p",
      { class: "legend" },
      ...DOUBT.map((words, k) =>
        el("span", { class: "key" }, el("i", { "data-step": k, "aria-hidden": "true" }), words, el("span", { class: "expert" }, ` ${edges[k]}–${edges[k + 1]} %`)),
      ),
    );
  }

  Object.assign(window.lrp4rag, { passageText, sentenceText, quoteFor, legend });
})();

"use strict";
// The texts of an answer and of its passages, in pieces that are marked.
(() => {
  const {
    el, visible, stretches, DOUBT, STEPS, textOf, contradictionsIn, spansIn, differencesIn, computedIn, stateOf, restsOn,
  } = window.lrp4rag;
  const AROUND = 80; // characters that are quoted on either side of a value

  // A passage's text in stretches, with what contradicts the answer and what the sentence at hand rests on.
  function passageText(model, passage, sentence) {
    const contradicting = model.contradictions
      .filter((one) => one.passage === passage.number)
      .map((one) => ({ start: one.passage_start, end: one.passage_end, told: one }));
    const near = sentence && restsOn(sentence);
    const here = near && near.passage === passage.number;
    const rests = here ? [{ start: near.start, end: near.end }] : [];
    const words = here ? (near.words ?? []).map(([start, end]) => ({ start, end })) : [];
    const against = sentence ? differencesIn(model, sentence).map((one) => ({ ...placeOf(one), against: true })) : [];
    const terms = sentence ? computedIn(model, sentence).flatMap((one) => one.parts.map((part) => ({ ...part, passage: one.passage, term: true }))) : [];
    const further = [...against, ...terms].filter((one) => one.passage === passage.number);
    const mine = new Set(sentence ? contradictionsIn(model, sentence).map((one) => one.number) : []);
    const marked = (part) => {
      const texts = stretches(part.start, part.end, words).map((piece) => {
        const text = passage.chars.slice(piece.start, piece.end).join("");
        return piece.inside.length ? el("span", { class: "word" }, text) : text;
      });
      const told = part.inside.filter((one) => one.told).map((one) => one.told);
      const within = (kind) => part.inside.some((one) => one[kind]);
      const own = within("term") ? [el("b", { class: "term" }, ...texts)] : texts;
      return told.length || within("against") ? [instead(told, part, mine, own)] : own;
    };
    return stretches(0, passage.chars.length, rests).flatMap((region) => {
      const inner = stretches(region.start, region.end, [...contradicting, ...further]).flatMap(marked);
      return region.inside.length ? [el("span", { class: `rests ${stateOf(model, sentence)}` }, ...inner)] : inner;
    });
  }

  const placeOf = (one) => ({ passage: one.passage, start: one.passage_start, end: one.passage_end });

  // What a passage has instead; it begins with the number of the first contradiction that begins there. What it has
  // against the sentence at hand beside its values has no number.
  function instead(told, part, mine, texts) {
    const attributes = {
      class: !told.length || told.some((one) => mine.has(one.number)) ? "instead at-hand" : "instead",
      "data-join": told.map((one) => one.number).join(" ") || null,
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
    const contradicted = stateOf(model, sentence) === "contradicted" ? contradictionsIn(model, sentence) : [];
    const against = [...contradicted, ...differencesIn(model, sentence)].map((one) => ({ ...placeOf(one), tag: "ins" }));
    const terms = computedIn(model, sentence).map((one) => one.parts.map((part) => ({ ...part, passage: one.passage, tag: "b" })));
    const told = against.length ? [against[0]] : terms[0] ?? [];
    const nearest = against.length ? sentence.nearest : restsOn(sentence);
    const near = told.length && nearest?.passage !== told[0].passage ? null : nearest;
    const passage = model.passages[(told[0] ?? near)?.passage - 1];
    if (!passage) return [];
    const [first, last] = [Math.min(...told.map((one) => one.start)), Math.max(...told.map((one) => one.end))];
    const around = near ?? { start: first - AROUND, end: last + AROUND };
    const start = Math.max(0, Math.min(around.start, first));
    const end = Math.min(passage.chars.length, Math.max(around.end, last));
    const words = stretches(start, end, told).map((part) => {
      const text = passage.chars.slice(part.start, part.end).join("");
      return part.inside.length ? el(part.inside[0].tag, {}, text) : text;
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

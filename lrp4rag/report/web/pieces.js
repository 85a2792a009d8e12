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
      .filter((contradiction) => contradiction.passage === passage.number)
      .map((contradiction) => ({ start: contradiction.passage_start, end: contradiction.passage_end, contradiction }));
    const near = sentence && restsOn(sentence);
    const isNear = near && near.passage === passage.number;
    const rests = isNear ? [{ start: near.start, end: near.end }] : [];
    const words = isNear ? (near.words ?? []).map(([start, end]) => ({ start, end })) : [];
    const against = sentence ? differencesIn(model, sentence).map((difference) => ({ ...placeOf(difference), against: true })) : [];
    const terms = sentence ? computedIn(model, sentence).flatMap((value) => value.parts.map((operand) => ({ ...operand, passage: value.passage, term: true }))) : [];
    const further = [...against, ...terms].filter((range) => range.passage === passage.number);
    const mine = new Set(sentence ? contradictionsIn(model, sentence).map((contradiction) => contradiction.number) : []);
    const marked = (stretch) => {
      const texts = stretches(stretch.start, stretch.end, words).map((word) => {
        const text = passage.chars.slice(word.start, word.end).join("");
        return word.inside.length ? el("span", { class: "word" }, text) : text;
      });
      const contradictions = stretch.inside.filter((range) => range.contradiction).map((range) => range.contradiction);
      const within = (kind) => stretch.inside.some((range) => range[kind]);
      const marks = within("term") ? [el("b", { class: "term" }, ...texts)] : texts;
      return contradictions.length || within("against") ? [instead(contradictions, stretch, mine, marks)] : marks;
    };
    return stretches(0, passage.chars.length, rests).flatMap((region) => {
      const inner = stretches(region.start, region.end, [...contradicting, ...further]).flatMap(marked);
      return region.inside.length ? [el("span", { class: `rests ${stateOf(model, sentence)}` }, ...inner)] : inner;
    });
  }

  const placeOf = (difference) => ({ passage: difference.passage, start: difference.passage_start, end: difference.passage_end });

  // What a passage has instead; it begins with the number of the first contradiction that begins there. What it has
  // against the sentence at hand beside its values has no number.
  function instead(contradictions, stretch, mine, texts) {
    const attributes = {
      class: !contradictions.length || contradictions.some((contradiction) => mine.has(contradiction.number)) ? "instead at-hand" : "instead",
      "data-join": contradictions.map((contradiction) => contradiction.number).join(" ") || null,
      "data-number": contradictions.find((contradiction) => contradiction.passage_start === stretch.start)?.number,
    };
    return el("mark", attributes, ...texts);
  }

  // A sentence's text in stretches: suspect words, and values that a passage has otherwise.
  function sentenceText(model, sentence) {
    const contradictions = contradictionsIn(model, sentence).filter((contradiction) => contradiction.start !== null);
    const spans = spansIn(model, sentence);
    const cut = (range) => ({ ...range, start: Math.max(range.start, sentence.start), end: Math.min(range.end, sentence.end) });
    const ranges = [
      ...contradictions.map((contradiction) => ({ ...cut(contradiction), contradiction })),
      ...spans.map((span) => ({ ...cut(span), suspect: true })),
    ];
    return stretches(sentence.start, sentence.end, ranges).map((stretch) => {
      const text = textOf(model, stretch.start, stretch.end);
      const wrong = stretch.inside.find((range) => range.contradiction);
      if (wrong) {
        const number = wrong.start === stretch.start ? wrong.contradiction.number : null;
        return el("mark", { class: "wrong", "data-join": wrong.contradiction.number, "data-number": number }, text);
      }
      return stretch.inside.length ? el("span", { class: "suspect" }, text) : document.createTextNode(visible(text));
    });
  }

  // The passage's own words, where the passage itself may be out of sight.
  function quoteFor(model, sentence) {
    if (!sentence) return [];
    const contradicted = stateOf(model, sentence) === "contradicted" ? contradictionsIn(model, sentence) : [];
    const against = [...contradicted, ...differencesIn(model, sentence)].map((difference) => ({ ...placeOf(difference), tag: "ins" }));
    const terms = computedIn(model, sentence).map((value) => value.parts.map((operand) => ({ ...operand, passage: value.passage, tag: "b" })));
    const quoted = against.length ? [against[0]] : terms[0] ?? [];
    const nearest = against.length ? sentence.nearest : restsOn(sentence);
    const near = quoted.length && nearest?.passage !== quoted[0].passage ? null : nearest;
    const passage = model.passages[(quoted[0] ?? near)?.passage - 1];
    if (!passage) return [];
    const [first, last] = [Math.min(...quoted.map((range) => range.start)), Math.max(...quoted.map((range) => range.end))];
    const around = near ?? { start: first - AROUND, end: last + AROUND };
    const start = Math.max(0, Math.min(around.start, first));
    const end = Math.min(passage.chars.length, Math.max(around.end, last));
    const words = stretches(start, end, quoted).map((stretch) => {
      const text = passage.chars.slice(stretch.start, stretch.end).join("");
      return stretch.inside.length ? el(stretch.inside[0].tag, {}, text) : text;
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

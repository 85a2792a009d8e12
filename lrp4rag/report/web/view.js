"use strict";
// The answer beside its passages: sentences coloured by how doubtful they are, what contradicts them joined with them,
// and, for the sentence at hand, what it rests on.
(() => {
  const {
    el, unseen, clipped, plural, DOUBTED, stepOf, textOf, contradictionsIn, stateOf, why, figuresOf, issue, quoteFor,
    passageText, sentenceText, legend, joins,
  } = window.lrp4rag;
  const MOST = 6; // of what is wrong that is listed at once
  let views = 0;

  // `model` as model.js makes it. What is added to its sentences is shown by `more`.
  function view(model, { quiet = false } = {}) {
    const id = `view-${(views += 1)}`;
    const answer = el("div", {
      class: "answer text", dir: "auto", role: "group", "aria-label": "Answer, sentence by sentence; arrow keys move",
    });
    const status = el("div", { class: "why", role: "status" });
    const quote = el("div", { class: "quote" });
    const card = el("div", { class: "at-hand-box", tabindex: 0, role: "group", "aria-label": "Why" }, status, quote);
    const passages = el("div", { class: "passages" });
    const issues = el("ul", { class: "issues" }), others = el("details", { hidden: true });
    const summary = el("p", { class: "summary" });
    const root = el(
      "div",
      { class: "pair" },
      el(
        "section",
        { class: "side", "aria-labelledby": `${id}-answer` },
        el("h2", { id: `${id}-answer` }, "Answer"),
        model.question ? el("p", { class: "asked" }, el("span", { class: "soft" }, "Asked: "), el("bdi", {}, model.question)) : null,
        answer,
        legend(),
        card,
        el("div", { class: "found" }, summary, issues, others),
      ),
      el("section", { class: "side", "aria-labelledby": `${id}-passages` }, el("h2", { id: `${id}-passages` }, "Passages"), passages),
    );
    const lines = joins(root);
    let hovered = null, focused = null, chosen = null, suggested = false, shown = 0, last = 0;
    const elements = [];

    function paint() {
      const k = hovered ?? focused ?? chosen;
      const sentence = k === null ? null : model.sentences[k];
      card.classList.toggle("picked", focused !== null || (chosen !== null && !suggested));
      elements.forEach((element, number) => {
        element.classList.toggle("at-hand", number === k);
        element.setAttribute("aria-pressed", String(number === chosen));
      });
      passages.replaceChildren(
        ...model.passages.map((passage) =>
          el(
            "article",
            { class: "passage", "data-passage": passage.number },
            el("h3", {}, `Passage ${passage.number}`, passage.name ? el("bdi", {}, ` · ${clipped(passage.name, 60)}`) : null),
            el("p", { class: "text", dir: "auto" }, ...passageText(model, passage, sentence)),
          ),
        ),
      );
      quote.replaceChildren(...quoteFor(model, sentence));
      if (sentence) {
        status.className = `why ${stateOf(model, sentence)}`;
        status.replaceChildren(
          el("p", {}, why(model, sentence)),
          el("p", { class: "expert soft" }, figuresOf(sentence)),
        );
      } else {
        status.className = "why";
        const hint = model.sentences.length ? "Point at a sentence, tap it, or move with the arrow keys: its source lights up." : "";
        status.replaceChildren(el("p", { class: "soft" }, hint));
      }
      lines.draw(sentence ? new Set(contradictionsIn(model, sentence).map((contradiction) => contradiction.number)) : null);
    }

    const pick = (event) => {
      const element = event.target.closest?.(".sentence");
      return element ? elements.indexOf(element) : null;
    };
    function choose(k) {
      [chosen, suggested] = [k, false];
      paint();
      if (k !== null) elements[k].scrollIntoView({ block: "nearest" });
    }
    const toggle = (k) => choose(chosen === k && !suggested ? null : k);
    // One sentence is a tab stop; arrow keys go on from there.
    function move(k) {
      if (!elements[k]) return;
      elements.forEach((element, number) => { element.tabIndex = number === k ? 0 : -1; });
      elements[k].focus();
    }
    answer.addEventListener("mouseover", (event) => { hovered = pick(event); paint(); });
    answer.addEventListener("mouseleave", () => { hovered = null; paint(); });
    answer.addEventListener("focusin", (event) => { focused = pick(event); paint(); });
    answer.addEventListener("focusout", () => { focused = null; paint(); });
    answer.addEventListener("click", (event) => {
      const k = pick(event);
      if (k !== null) toggle(k);
    });
    answer.addEventListener("keydown", (event) => {
      const k = pick(event);
      const to = { ArrowRight: k + 1, ArrowDown: k + 1, ArrowLeft: k - 1, ArrowUp: k - 1, Home: 0, End: elements.length - 1 };
      if (event.key === "Escape") {
        hovered = null;
        choose(null);
      } else if (event.key === "Enter" || event.key === " ") toggle(k);
      else if (event.key in to && !event.ctrlKey && !event.altKey && !event.metaKey) move(to[event.key]);
      else return;
      event.preventDefault();
    });

    // What the model has more than is shown: text between sentences, and sentences.
    function more() {
      for (; shown < model.sentences.length; shown += 1) {
        const sentence = model.sentences[shown];
        if (sentence.start > last) answer.append(el("span", {}, textOf(model, last, sentence.start)));
        const state = stateOf(model, sentence);
        const element = el(
          "span",
          {
            class: `sentence ${state}${sentence.withheld ? " withheld" : ""}`,
            role: "button",
            tabindex: shown ? -1 : 0,
            "aria-pressed": "false",
            "data-step": ["nothing", "unjudged"].includes(state) || sentence.probability === null || sentence.probability === undefined ? null : stepOf(state, sentence.probability),
          },
          ...sentenceText(model, sentence),
          state === "supported" || state === "nothing" ? null : unseen(` (${why(model, sentence)})`),
        );
        elements.push(element);
        answer.append(element);
        last = sentence.end;
      }
      const rest = model.streaming ? "" : textOf(model, last, model.chars.length);
      if (rest) {
        answer.append(el("span", {}, rest));
        last = model.chars.length;
      }
      list();
      paint();
    }

    // What is wrong, as a list to go through.
    function list() {
      const all = model.sentences.map((sentence, k) => [sentence, k, stateOf(model, sentence)]);
      const wrong = Object.entries(DOUBTED).map(([state, words]) => [words, all.filter(([, , status]) => status === state)]);
      const items = wrong.flatMap(([, doubted]) => doubted).map(([sentence, k, state]) =>
        el("li", { class: state }, el("button", { type: "button", class: "issue", onclick: () => { move(k); choose(k); } }, issue(model, sentence, state))),
      );
      const rest = items.splice(MOST);
      issues.replaceChildren(...items);
      others.hidden = !rest.length;
      others.replaceChildren(el("summary", {}, `${rest.length} more`), el("ul", { class: "issues" }, ...rest));
      const count = model.sentences.length;
      const parts = wrong.filter(([, doubted]) => doubted.length).map(([words, doubted]) => `${doubted.length} ${words}`);
      const words = parts.length ? `of ${plural(count, "sentence", "sentences")}: ${parts.join(", ")}.` : `${plural(count, "sentence", "sentences")}: none is suspect. Faults can still be missed.`;
      summary.textContent = count && !quiet ? words.charAt(0).toUpperCase() + words.slice(1) : "";
    }

    // The sentence that is worth looking at first.
    function first() {
      const states = model.sentences.map((sentence) => stateOf(model, sentence));
      const wrong = Object.keys(DOUBTED).map((state) => states.indexOf(state)).find((k) => k >= 0);
      if (wrong === undefined || chosen !== null) return;
      [chosen, suggested] = [wrong, true];
      paint();
    }

    more();
    if (!model.streaming) first();
    return { root, more, first, redraw: () => lines.draw() };
  }

  Object.assign(window.lrp4rag, { view });
})();

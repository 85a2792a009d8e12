"use strict";
// Lines between the words of an answer and the words of a passage that contradict them, where both stand side by side.
(() => {
  const { el } = window.lrp4rag;
  const NARROW = 760;
  const GAP = 60; // between the columns
  const LANES = 4; // in it
  const KINDS = 4; // of lines: view.css has their dashes

  function joins(root) {
    const drawing = el("svg", { class: "joins", "aria-hidden": "true", focusable: "false" });
    root.append(drawing);
    let atHand = null;

    // Under a word, within the drawing: lines run between the lines of text and never through them.
    function under(element, frame, which) {
      const box = [...element.getClientRects()].filter((rectangle) => rectangle.width).at(which);
      return box ? { x: box.left + box.width / 2 - frame.left, y: box.bottom - frame.top + 1 } : null;
    }

    // The distance of each end from its word, so that lines of one row of text run beside each other: ends that are
    // `nearer` to the gap run closer to the text.
    function apart(ends, least, room, nearer) {
      const rows = new Map();
      for (const end of ends) rows.set(Math.round(end.y), [...(rows.get(Math.round(end.y)) ?? []), end]);
      for (const row of rows.values()) {
        const step = Math.min(4, room / row.length);
        row.sort(nearer).forEach((end, k) => { end.run = end.y + least + k * step; });
      }
    }

    function draw(numbers = atHand) {
      atHand = numbers;
      const frame = root.getBoundingClientRect();
      const lines = [];
      if (frame.width >= NARROW) {
        for (const word of root.querySelectorAll("mark.wrong[data-number]")) {
          const number = Number(word.dataset.join);
          const instead = root.querySelector(`mark.instead[data-join~="${number}"]`);
          const [from, to] = [under(word, frame, -1), instead && under(instead, frame, 0)];
          if (from && to) lines.push({ number, from, to, weak: word.closest(".sentence.unsupported") });
        }
        apart(lines.map((left) => left.from), 3, 10, (left, right) => right.x - left.x);
        apart(lines.map((left) => left.to), 2, 7, (left, right) => left.x - right.x);
      }
      const right = root.querySelector(".side:last-of-type").getBoundingClientRect().left - frame.left;
      drawing.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
      drawing.replaceChildren(...lines.flatMap((join, k) => line(join, right - GAP + ((k % LANES) + 0.5) * (GAP / LANES))));
    }

    // A line goes up or down in its lane between the columns, and has its number there.
    function line({ number, from, to, weak }, lane) {
      const state = atHand === null ? "" : atHand.has(number) ? " at-hand" : " away";
      const d = `M${from.x} ${from.y}V${from.run}H${lane - 6}C${lane + 3} ${from.run} ${lane - 3} ${to.run} ${lane + 6} ${to.run}H${to.x}V${to.y}`;
      return [
        el("path", { d, class: `join${state}${weak ? " weak" : ""}`, "data-kind": (number - 1) % KINDS }),
        el("text", { x: lane, y: (from.run + to.run) / 2 + 4, class: `join-number${state}` }, number),
      ];
    }

    if (window.ResizeObserver) new ResizeObserver(() => draw()).observe(root);
    document.fonts?.ready.then(() => draw());
    return { draw };
  }

  Object.assign(window.lrp4rag, { joins });
})();

"use strict";
// Lines between the words of an answer and the words of a passage that contradict them, where both stand side by side.
(() => {
  const { el } = window.lrp4rag;
  const NARROW = 760;
  const GAP = 40; // between the columns

  function joins(root) {
    const drawing = el("svg", { class: "joins", "aria-hidden": "true", focusable: "false" });
    root.append(drawing);
    let atHand = null;

    // Under a word, within the drawing: lines run between the lines of text and never through them.
    function under(element, frame, which) {
      const box = [...element.getClientRects()].filter((one) => one.width).at(which);
      return box ? { x: box.left + box.width / 2 - frame.left, y: box.bottom - frame.top + 1 } : null;
    }

    const gap = (frame) => root.querySelector(".side:last-of-type").getBoundingClientRect().left - frame.left - GAP / 2 - 6;

    function draw(numbers = atHand) {
      atHand = numbers;
      const frame = root.getBoundingClientRect();
      const paths = [];
      if (frame.width >= NARROW) {
        for (const from of root.querySelectorAll("mark.wrong[data-number]")) {
          const number = from.dataset.join;
          const to = root.querySelector(`mark.instead[data-join~="${CSS.escape(number)}"]`);
          const [one, other] = [under(from, frame, -1), to && under(to, frame, 0)];
          if (!one || !other) continue;
          const between = gap(frame) + (GAP * (((number * 2) % 7) - 3)) / 10;
          const [low, lower] = [one.y + 3, other.y + 2];
          const d = `M${one.x} ${one.y}V${low}H${between - 8}C${between + 4} ${low} ${between - 4} ${lower} ${between + 8} ${lower}H${other.x}V${other.y}`;
          const state = atHand === null ? "" : atHand.has(Number(number)) ? " at-hand" : " away";
          const weak = from.closest(".sentence.unsupported") ? " weak" : "";
          paths.push(el("path", { d, class: `join${state}${weak}` }));
        }
      }
      drawing.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
      drawing.replaceChildren(...paths);
    }

    if (window.ResizeObserver) new ResizeObserver(() => draw()).observe(root);
    document.fonts?.ready.then(() => draw());
    return { draw };
  }

  Object.assign(window.lrp4rag, { joins });
})();

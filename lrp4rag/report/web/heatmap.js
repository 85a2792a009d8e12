"use strict";
// The prompt shaded by relevance: choosing a sentence, or a token, of the response shades what it draws on.
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const response = document.getElementById("response");
  const status = document.getElementById("status");
  const clear = document.getElementById("clear");
  const prompt = [...document.querySelectorAll("#prompt .p")];
  const passages = [...document.querySelectorAll("#prompt .passage")];
  const modes = {
    sentences: { key: "s", selector: "[data-s]", ...data.sentences },
    tokens: data.tokens && { key: "t", selector: "[data-t]", ...data.tokens },
  };
  let mode = modes.sentences;
  let hovered = null, focused = null, chosen = null;
  let shown = [];

  const signed = (value) => {
    const text = Math.abs(value).toPrecision(3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    return (value < 0 ? "−" : "+") + text;
  };
  const index = (element) => Number(element.dataset[mode.key]);
  const elements = (item) => [...response.querySelectorAll(`[data-${mode.key}="${item}"]`)];

  function level(value) {
    return Math.sign(value) * Math.min(Math.floor((Math.abs(value) / mode.scale) * data.levels + 0.5), data.levels);
  }

  function shade(row) {
    prompt.forEach((element, k) => {
      const step = row.length ? level(row[k]) : 0;
      if (step) element.dataset.l = step;
      else delete element.dataset.l;
    });
  }

  function showBars(values) {
    const largest = Math.max(0, ...values.slice(2));
    values.forEach((value, k) => {
      const bar = document.querySelector(`[data-bar="${k}"]`);
      const width = mode.high - mode.low;
      bar.setAttribute("x", ((Math.min(value, 0) - mode.low) / width) * 100);
      bar.setAttribute("width", (Math.abs(value) / width) * 100);
      bar.setAttribute("class", value < 0 ? "negative" : "positive");
      document.querySelector(`[data-value="${k}"]`).textContent = signed(value);
      const most = k >= 2 && value === largest && largest > 0;
      bar.closest("tr").classList.toggle("most", most);
      for (const passage of passages) {
        if (passage.dataset.name === `passage ${k - 1}`) passage.classList.toggle("most", most);
      }
    });
  }

  function describe(item) {
    if (item === null) return `Mean over the response's ${mode.key === "s" ? "sentences" : "tokens"}`;
    if (mode.key === "s") {
      const relevance = data.relevance[item];
      const figure = relevance === null ? "" : `relevance ${signed(relevance)}; `;
      return `Sentence ${item + 1}: ${figure}main source: ${data.restsOn[item]}`;
    }
    const text = elements(item).map((element) => element.textContent).join("");
    return `Token “${text.trim() || text.replace(/\n/g, "⏎")}”`;
  }

  function show() {
    const item = hovered ?? focused ?? chosen;
    shade(item === null ? mode.mean : mode.rows[item]);
    showBars(item === null ? mode.meanBars : mode.bars[item]);
    status.textContent = describe(item);
    clear.hidden = chosen === null;
    for (const element of shown) element.classList.remove("shown", "chosen");
    shown = [];
    for (const [which, name] of [[item, "shown"], [chosen, "chosen"]]) {
      if (which === null) continue;
      for (const element of elements(which)) {
        element.classList.add(name);
        if (name === "chosen" && element.hasAttribute("role")) element.setAttribute("aria-pressed", "true");
        shown.push(element);
      }
    }
  }

  function choose(item) {
    for (const element of response.querySelectorAll('[aria-pressed="true"]')) {
      element.setAttribute("aria-pressed", "false");
    }
    chosen = item;
    show();
  }

  // One element per item takes the focus: the last, since a token's white space comes first.
  function enter(next) {
    for (const element of response.querySelectorAll("[role]")) {
      for (const name of ["role", "tabindex", "aria-pressed"]) element.removeAttribute(name);
    }
    mode = next;
    hovered = focused = null;
    const last = new Map();
    for (const element of response.querySelectorAll(mode.selector)) last.set(index(element), element);
    let first = true;
    for (const element of last.values()) {
      element.setAttribute("role", "button");
      element.setAttribute("aria-pressed", "false");
      // Tokens are many: one tab stop, and the arrow keys from there.
      element.tabIndex = first || mode.key === "s" ? 0 : -1;
      first = false;
    }
    for (const element of document.querySelectorAll("[data-scale]")) element.textContent = mode.scale;
    choose(null);
  }

  function move(from, by) {
    const all = [...response.querySelectorAll("[role]")];
    const to = all[all.indexOf(from) + by];
    if (!to) return;
    if (mode.key === "t") [from.tabIndex, to.tabIndex] = [-1, 0];
    to.focus();
  }

  const item = (event) => {
    const element = event.target.closest(mode.selector);
    return element && response.contains(element) ? index(element) : null;
  };
  response.addEventListener("mouseover", (event) => { hovered = item(event); show(); });
  response.addEventListener("mouseleave", () => { hovered = null; show(); });
  response.addEventListener("focusin", (event) => { focused = item(event); show(); });
  response.addEventListener("focusout", () => { focused = null; show(); });
  response.addEventListener("click", (event) => {
    if (item(event) !== null) choose(item(event));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hovered = focused = null;
      choose(null);
    } else if (event.target instanceof Element && event.target.getAttribute("role") === "button") {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (by) move(event.target, by);
      else if (event.key === "Enter" || event.key === " ") choose(item(event));
      else return;
      event.preventDefault();
    }
  });
  clear.addEventListener("click", () => choose(null));

  // The number behind a shade, on demand.
  document.getElementById("prompt").addEventListener("mouseover", (event) => {
    const element = event.target.closest(".p");
    const k = prompt.indexOf(element);
    if (k < 0) return;
    const current = focused ?? chosen;
    const row = current === null ? mode.mean : mode.rows[current];
    if (row.length) element.title = `${signed(row[k])} logits`;
  });

  if (modes.tokens) {
    const radios = document.getElementById("modes");
    radios.hidden = false;
    radios.addEventListener("change", (event) => enter(modes[event.target.value]));
  }
  // A reloaded page keeps the radio button that was chosen.
  const checked = document.querySelector('input[name="mode"]:checked');
  enter((modes.tokens && checked && modes[checked.value]) || modes.sentences);
})();

"use strict";
// The prompt shaded by relevance: choosing a sentence of the response shades what it draws on.
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const response = document.getElementById("response");
  const status = document.getElementById("status");
  const clear = document.getElementById("clear");
  const prompt = [...document.querySelectorAll("#prompt .p")];
  const passages = [...document.querySelectorAll("#prompt .passage")];
  const { rows, bars, mean, meanBars, scale, low, high } = data.sentences;
  let hovered = null, focused = null, chosen = null;
  let shown = [];

  const signed = (value) => {
    const text = Math.abs(value).toPrecision(3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    return (value < 0 ? "−" : "+") + text;
  };
  const all = [...response.querySelectorAll("[data-s]")];
  const index = (element) => Number(element.dataset.s);

  function level(value) {
    return Math.sign(value) * Math.min(Math.floor((Math.abs(value) / scale) * data.levels + 0.5), data.levels);
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
      const width = high - low;
      bar.setAttribute("x", ((Math.min(value, 0) - low) / width) * 100);
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
    if (item === null) return "Mean over the response's sentences";
    const relevance = data.relevance[item];
    const figure = relevance === null ? "" : `relevance ${signed(relevance)}; `;
    return `Sentence ${item + 1}: ${figure}main source: ${data.restsOn[item]}`;
  }

  function show() {
    const item = hovered ?? focused ?? chosen;
    shade(item === null ? mean : rows[item]);
    showBars(item === null ? meanBars : bars[item]);
    status.textContent = describe(item);
    clear.hidden = chosen === null;
    for (const element of shown) element.classList.remove("shown", "chosen");
    shown = [];
    for (const [which, name] of [[item, "shown"], [chosen, "chosen"]]) {
      if (which === null) continue;
      for (const element of all.filter((candidate) => index(candidate) === which)) {
        element.classList.add(name);
        if (name === "chosen") element.setAttribute("aria-pressed", "true");
        shown.push(element);
      }
    }
  }

  function choose(item) {
    for (const element of all) element.setAttribute("aria-pressed", "false");
    chosen = item;
    show();
  }

  function move(from, by) {
    all[all.indexOf(from) + by]?.focus();
  }

  const item = (event) => {
    const element = event.target.closest("[data-s]");
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
    const row = current === null ? mean : rows[current];
    if (row.length) element.title = `${signed(row[k])} logits`;
  });

  for (const element of all) {
    element.setAttribute("role", "button");
    element.tabIndex = 0;
  }
  choose(null);
})();

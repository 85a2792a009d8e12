"use strict";
// Decisions over time, as drawings with a table beside them.
(() => {
  const { el, DONE, percent } = window.lrp4rag;
  const ACTIONS = Object.keys(DONE);
  const MOST = 30; // bars
  const LENGTHS = [60, 300, 900, 3600, 86400, 7 * 86400, 30 * 86400]; // seconds
  const HIGH = 180, LEFT = 48, BELOW = 22, TOP = 8;
  const NARROW = window.matchMedia("(max-width: 500px)");
  const wide = () => (NARROW.matches ? 350 : 600);

  // Decisions in equal stretches of time, the oldest first; empty ones are there too.
  function bucketed(decisions) {
    const times = decisions.map((decision) => Date.parse(decision.time) / 1000);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    const length = LENGTHS.find((seconds) => (last - first) / seconds < MOST) ?? Math.ceil((last - first + 1) / MOST);
    const from = Math.floor(first / length);
    const buckets = Array.from({ length: Math.floor(last / length) - from + 1 }, (_, k) => ({ start: (from + k) * length, length, all: [] }));
    decisions.forEach((decision, k) => buckets[Math.floor(times[k] / length) - from].all.push(decision));
    return buckets;
  }

  function label({ start, length }) {
    const date = new Date(start * 1000);
    return length >= 86400
      ? date.toLocaleDateString(undefined, { month: "short", day: "numeric" })
      : date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  }

  const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
  const means = (buckets, name) => buckets.map((bucket) => mean(bucket.all.map((decision) => decision[name]).filter((value) => typeof value === "number")));

  function frame(name, buckets, most, unit, drawn) {
    const width = wide();
    const slot = (width - LEFT) / buckets.length;
    const every = Math.ceil(buckets.length / (width / 100));
    return el(
      "svg",
      { viewBox: `0 0 ${width} ${HIGH}`, role: "img", "aria-label": name, class: "plot" },
      el("line", { x1: LEFT, x2: width, y1: HIGH - BELOW, y2: HIGH - BELOW, class: "axis" }),
      el("text", { x: LEFT - 6, y: TOP + 8, "text-anchor": "end" }, unit(most)),
      el("text", { x: LEFT - 6, y: HIGH - BELOW, "text-anchor": "end" }, unit(0)),
      ...buckets.map((bucket, k) => {
        const x = LEFT + (k + 0.5) * slot;
        return k % every || x > width - 24 ? null : el("text", { x, y: HIGH - 6, "text-anchor": "middle" }, label(bucket));
      }),
      ...drawn((k) => LEFT + k * slot, slot, (value) => HIGH - BELOW - (value / most) * (HIGH - BELOW - TOP)),
    );
  }

  function actionsPlot(buckets) {
    const bar = Math.min(48, ((wide() - LEFT) / buckets.length) * 0.76);
    const most = Math.max(1, ...buckets.map((bucket) => bucket.all.length));
    return frame("How many answers were served, marked, disclosed, held or withheld, over time; the table has the numbers", buckets, most, String, (x, slot, y) =>
      buckets.flatMap((bucket, k) => {
        let below = 0;
        return ACTIONS.map((action) => {
          const count = bucket.all.filter((decision) => decision.action === action).length;
          if (!count) return null;
          below += count;
          return el("rect", {
            x: x(k) + (slot - bar) / 2, width: bar, y: y(below), height: y(below - count) - y(below), class: `action ${action}`,
          });
        });
      }),
    );
  }

  function sharesPlot(buckets) {
    const [sentences, facts] = [means(buckets, "faithfulness"), means(buckets, "fact_score")];
    const line = (values, kind) => (x, slot, y) => {
      const points = values.map((value, k) => (value === null ? null : [x(k) + slot / 2, y(value)])).filter(Boolean);
      return [
        el("polyline", { points: points.map((point) => point.join()).join(" "), class: `share ${kind}` }),
        ...points.map(([cx, cy]) => el("circle", { cx, cy, r: 3, class: `share ${kind}` })),
      ];
    };
    return frame("The share of sentences, and of facts, that are grounded, over time; the table has the numbers", buckets, 1, percent, (x, slot, y) => [
      ...line(sentences, "sentences")(x, slot, y), ...line(facts, "facts")(x, slot, y),
    ]);
  }

  function rows(buckets) {
    const [sentences, facts] = [means(buckets, "faithfulness"), means(buckets, "fact_score")];
    return buckets
      .map((bucket, k) => [
        new Date(bucket.start * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }),
        ...ACTIONS.map((action) => bucket.all.filter((decision) => decision.action === action).length || ""),
        percent(sentences[k]), percent(facts[k]),
      ])
      .filter((_, k) => buckets[k].all.length);
  }

  const key = (kind, words) => el("span", { class: "key" }, el("i", { class: kind, "aria-hidden": "true" }), words);

  // Both drawings, their keys, and a table of the same numbers.
  function plots(decisions) {
    const buckets = bucketed(decisions);
    return el(
      "div",
      { class: "plots" },
      el("figure", {}, el("figcaption", {}, "What was done with answers"), actionsPlot(buckets), el("p", { class: "legend" }, ...ACTIONS.map((action) => key(`action ${action}`, DONE[action])))),
      el("figure", {}, el("figcaption", {}, "How much of them looks grounded"), sharesPlot(buckets), el("p", { class: "legend" }, key("share sentences", "sentences"), key("share facts", "facts"))),
      el("details", {}, el("summary", {}, "The same as a table"),
        window.lrp4rag.table("Decisions over time", ["From", ...ACTIONS.map((action) => DONE[action]), "Sentences grounded", "Facts grounded"], rows(buckets))),
    );
  }

  Object.assign(window.lrp4rag, { plots, bucketed });
})();

"use strict";
// Decisions of the audit log, over time and one by one.
(() => {
  const { el, plots, call, percent, clipped, plural, DONE, toneOf, decisionWords, when } = window.lrp4rag;
  const $ = (id) => document.getElementById(id);
  const AT_A_TIME = 500, MOST_LINES = 200;

  function historian() {
    const place = $("log"), status = $("history-status"), older = $("older");
    const find = el("input", { type: "search", id: "find", maxlength: 300, autocomplete: "off", spellcheck: "false", oninput: () => list() });
    const which = el(
      "select", { id: "which", onchange: () => list() },
      el("option", { value: "" }, "all"), ...Object.entries(DONE).map(([action, words]) => el("option", { value: action }, words)),
    );
    const count = el("p", { class: "soft", role: "status" }), lines = el("ol", { class: "decisions" });
    const filter = el(
      "p", { class: "filter", role: "search" },
      el("span", {}, el("label", { for: "find" }, "Question, id or reason"), " ", find),
      el("span", {}, el("label", { for: "which" }, "What was done"), " ", which),
    );
    let known = [];

    async function load({ more = false } = {}) {
      status.classList.remove("failed");
      status.textContent = "Reading the audit log …";
      const before = more && known.length ? `&before=${known.at(-1).sequence}` : "";
      try {
        const { decisions } = await call(`v1/decisions?questions=true&limit=${AT_A_TIME}${before}`);
        known = more ? [...known, ...decisions] : decisions;
        older.hidden = decisions.length < AT_A_TIME;
        status.textContent = known.length ? `The last ${known.length} decisions on answers.` : "";
        show();
      } catch (error) {
        status.classList.add("failed");
        status.textContent = error.message;
      }
    }

    function show() {
      if (!known.length) {
        place.replaceChildren(el("p", { class: "empty" }, "Nothing is decided yet."));
        return;
      }
      const kept = known.some((one) => one.question !== undefined);
      place.replaceChildren(
        plots(known), el("h2", {}, "One by one"), filter,
        ...(kept ? [] : [el("p", { class: "soft" }, "Questions are shown where the server keeps texts (the setting keep_texts).")]), count, lines,
      );
      list();
    }

    // What the filter lets through: each of its words stands somewhere in what the line shows.
    function list() {
      const words = find.value.toLowerCase().split(/\s+/u).filter(Boolean);
      const found = known.filter((one) => {
        const text = [one.question, one.id, ...decisionWords(one), one.client, one.rule, when(one.time)].join(" ").toLowerCase();
        return (!which.value || one.action === which.value) && words.every((word) => text.includes(word));
      });
      const shown = found.slice(0, MOST_LINES);
      const more = found.length > shown.length ? `; the last ${shown.length} are shown` : "";
      count.textContent = found.length === known.length && !more ? "" : `${found.length} of ${plural(known.length, "decision", "decisions")}${more}.`;
      lines.replaceChildren(...shown.map(line));
    }

    function line(one) {
      const [title, reason] = decisionWords(one);
      const record = el("pre", { class: "text", tabindex: 0 });
      const details = el("details", { class: "expert" }, el("summary", {}, "Record"), record);
      details.addEventListener("toggle", async () => {
        if (!details.open || record.textContent) return;
        try {
          record.textContent = window.lrp4rag.visible(JSON.stringify(await call(`v1/decisions/${encodeURIComponent(one.id)}`), null, 2));
        } catch (error) {
          record.textContent = error.message;
        }
      });
      return el(
        "li",
        { class: toneOf(one.action) },
        el("p", {}, el("time", { datetime: one.time, class: "soft" }, when(one.time)), " ", el("strong", { class: "done" }, title), " ", reason),
        one.question === undefined ? null : el("p", { class: "asked" }, el("span", { class: "soft" }, "Asked: "), el("bdi", {}, clipped(one.question, 200))),
        el("p", { class: "soft" }, "Id: ", el("code", {}, one.id)),
        el("p", { class: "expert soft" }, [
          one.kind, `for ${one.client}`, one.probability === undefined || one.probability === null ? "" : `probability ${percent(one.probability)}`,
          one.faithfulness === undefined || one.faithfulness === null ? "" : `sentences grounded ${percent(one.faithfulness)}`, one.rule ? `rule ${one.rule}` : "",
        ].filter(Boolean).join("; ")),
        details,
      );
    }

    older.addEventListener("click", () => load({ more: true }));
    $("history-again").addEventListener("click", () => load());
    return { load };
  }

  Object.assign(window.lrp4rag, { historian });
})();

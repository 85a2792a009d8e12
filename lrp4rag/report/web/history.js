"use strict";
// Decisions of the audit log, over time and one by one.
(() => {
  const { el, plots, call, percent, clipped, plural, DONE, toneOf, decisionWords, when } = window.lrp4rag;
  const $ = (id) => document.getElementById(id);
  const AT_A_TIME = 500, MOST_LINES = 200;

  function historian() {
    const log = $("log"), status = $("history-status"), older = $("older");
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
    let loaded = [];

    async function load({ more = false } = {}) {
      status.classList.remove("failed");
      status.textContent = "Reading the audit log …";
      const before = more && loaded.length ? `&before=${loaded.at(-1).sequence}` : "";
      try {
        const { decisions } = await call(`v1/decisions?questions=true&limit=${AT_A_TIME}${before}`);
        loaded = more ? [...loaded, ...decisions] : decisions;
        older.hidden = decisions.length < AT_A_TIME;
        status.textContent = loaded.length ? `The last ${loaded.length} decisions on answers.` : "";
        show();
      } catch (error) {
        status.classList.add("failed");
        status.textContent = error.message;
      }
    }

    function show() {
      if (!loaded.length) {
        log.replaceChildren(el("p", { class: "empty" }, "Nothing is decided yet."));
        return;
      }
      const hasQuestions = loaded.some((decision) => decision.question !== undefined);
      log.replaceChildren(
        plots(loaded), el("h2", {}, "One by one"), filter,
        ...(hasQuestions ? [] : [el("p", { class: "soft" }, "Questions are shown where the server keeps texts (the setting keep_texts).")]), count, lines,
      );
      list();
    }

    // What the filter lets through: each of its words stands somewhere in what the line shows.
    function list() {
      const words = find.value.toLowerCase().split(/\s+/u).filter(Boolean);
      const matching = loaded.filter((decision) => {
        const text = [decision.question, decision.id, ...decisionWords(decision), decision.client, decision.rule, when(decision.time)].join(" ").toLowerCase();
        return (!which.value || decision.action === which.value) && words.every((word) => text.includes(word));
      });
      const shown = matching.slice(0, MOST_LINES);
      const more = matching.length > shown.length ? `; the last ${shown.length} are shown` : "";
      count.textContent = matching.length === loaded.length && !more ? "" : `${matching.length} of ${plural(loaded.length, "decision", "decisions")}${more}.`;
      lines.replaceChildren(...shown.map(line));
    }

    function line(decision) {
      const [title, reason] = decisionWords(decision);
      const record = el("pre", { class: "text", tabindex: 0 });
      const details = el("details", { class: "expert" }, el("summary", {}, "Record"), record);
      details.addEventListener("toggle", async () => {
        if (!details.open || record.textContent) return;
        try {
          record.textContent = window.lrp4rag.visible(JSON.stringify(await call(`v1/decisions/${encodeURIComponent(decision.id)}`), null, 2));
        } catch (error) {
          record.textContent = error.message;
        }
      });
      return el(
        "li",
        { class: toneOf(decision.action) },
        el("p", {}, el("time", { datetime: decision.time, class: "soft" }, when(decision.time)), " ", el("strong", { class: "done" }, title), " ", reason),
        decision.question === undefined ? null : el("p", { class: "asked" }, el("span", { class: "soft" }, "Asked: "), el("bdi", {}, clipped(decision.question, 200))),
        el("p", { class: "soft" }, "Id: ", el("code", {}, decision.id)),
        el("p", { class: "expert soft" }, [
          decision.kind, `for ${decision.client}`, decision.probability === undefined || decision.probability === null ? "" : `probability ${percent(decision.probability)}`,
          decision.faithfulness === undefined || decision.faithfulness === null ? "" : `sentences grounded ${percent(decision.faithfulness)}`, decision.rule ? `rule ${decision.rule}` : "",
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

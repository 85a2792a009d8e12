"use strict";
// Decisions of the audit log, over time and one by one.
(() => {
  const { el, plots, call, percent, decisionWords, when } = window.lrp4rag;
  const $ = (id) => document.getElementById(id);
  const AT_A_TIME = 500;

  function historian() {
    const place = $("log"), status = $("history-status"), older = $("older");
    let known = [];

    async function load({ more = false } = {}) {
      status.classList.remove("failed");
      status.textContent = "Reading the audit log …";
      const before = more && known.length ? `&before=${known.at(-1).sequence}` : "";
      try {
        const { decisions } = await call(`v1/decisions?limit=${AT_A_TIME}${before}`);
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
      place.replaceChildren(plots(known), el("h2", {}, "One by one"), el("ol", { class: "decisions" }, ...known.slice(0, 200).map(line)));
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
        { class: one.action },
        el("p", {}, el("time", { datetime: one.time, class: "soft" }, when(one.time)), " ", el("strong", { class: "done" }, title), " ", reason),
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

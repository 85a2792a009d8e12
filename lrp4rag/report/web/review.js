"use strict";
// Answers that wait for a reviewer, one at a time. Keys work while the focus is in the queue and not in a field.
(() => {
  const { el, view, banner, ofRecord, call, plural, findingsOf } = window.lrp4rag;
  const NAME = "lrp4rag reviewer";
  const $ = (id) => document.getElementById(id);
  const SAYS = [
    ["a", "hallucinated", "Agree", "the answer is wrong"],
    ["d", "grounded", "Disagree", "the answer is right"],
    ["u", "unclear", "Unclear", "it cannot be told"],
  ];
  const when = (time) => new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

  function reviewer(counted) {
    const queue = $("queue"), status = $("review-status"), name = $("reviewer");
    let waiting = [], at = 0, busy = false;
    name.value = sessionStorage.getItem(NAME) ?? "";
    name.addEventListener("change", () => sessionStorage.setItem(NAME, name.value.trim()));

    function say(words, wrong = false) {
      status.textContent = words;
      status.classList.toggle("failed", wrong);
    }

    async function load() {
      try {
        waiting = (await call("v1/reviews")).reviews;
        at = Math.min(at, Math.max(0, waiting.length - 1));
        counted(waiting.length);
        say("");
        show();
      } catch (error) {
        waiting = [];
        queue.replaceChildren();
        say(error.message, true);
      }
    }

    function show({ focus = false } = {}) {
      const entry = waiting[at];
      if (!entry) {
        queue.replaceChildren(el("p", { class: "empty" }, "No answer waits for a reviewer."));
        return;
      }
      const hasTexts = entry.written.response !== undefined;
      const model = hasTexts ? ofRecord(entry, entry.written) : null;
      const shown = model && view(model);
      const checkbox = model?.contradictions.length
        ? el("label", { class: "check" }, el("input", { type: "checkbox", id: "marked" }), " The marked words are what is wrong, and the rest is right")
        : null;
      queue.replaceChildren(
        el(
          "p", { class: "row" },
          el("span", {}, `${at + 1} of ${plural(waiting.length, "answer", "answers")}, since ${when(entry.time)}`),
          el("span", {}, 
            el("button", { type: "button", class: "quiet", onclick: () => go(-1), disabled: at === 0, "aria-keyshortcuts": "k" }, "Previous (k)"), " ",
            el("button", { type: "button", class: "quiet", onclick: () => go(1), disabled: at === waiting.length - 1, "aria-keyshortcuts": "j" }, "Next (j)")),
        ),
        banner({ decision: entry, findings: findingsOf(entry.findings), unavailable: entry.unavailable }, { level: "h2" }),
        shown?.root ?? el("p", { class: "warning" }, "The texts of this answer are not kept (the setting keep_texts), so it cannot be shown. Its record: ", el("code", {}, entry.id)),
        el("label", { class: "field", for: "comment" }, "Comment (optional)"),
        el("textarea", { id: "comment", rows: 2, maxlength: 2000 }),
        checkbox,
        el(
          "div", { class: "says" },
          ...SAYS.map(([key, said, title, words]) =>
            el("button", { type: "button", class: key === "a" ? "main" : null, onclick: () => answer(said), "aria-keyshortcuts": key }, `${title} (${key}): ${words}`)),
        ),
      );
      shown?.redraw();
      if (focus) queue.querySelector(".done").focus();
    }

    function go(by) {
      at = Math.min(waiting.length - 1, Math.max(0, at + by));
      show({ focus: true });
    }

    async function answer(said) {
      const entry = waiting[at];
      if (!entry || busy) return;
      if (!name.value.trim()) {
        say("Write your name first: a review is recorded with it.", true);
        name.focus();
        return;
      }
      const spans = said === "hallucinated" && $("marked")?.checked ? entry.evidence.contradictions.map(({ start, end }) => ({ start, end })) : [];
      const comment = $("comment").value.trim() || null;
      busy = true;
      try {
        await call("v1/reviews", { body: { decision: entry.id, reviewer: name.value.trim(), said, spans, comment } });
        waiting.splice(at, 1);
        at = Math.min(at, Math.max(0, waiting.length - 1));
        counted(waiting.length);
        say(`Recorded: ${said}. ${waiting.length ? `${waiting.length} left.` : "None is left."}`);
        show({ focus: true });
      } catch (error) {
        say(error.message, true);
      }
      busy = false;
    }

    $("review").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, textarea, select")) return;
      const said = SAYS.find(([key]) => key === event.key);
      if (said) answer(said[1]);
      else if (event.key === "j") go(1);
      else if (event.key === "k") go(-1);
      else return;
      event.preventDefault();
    });
    $("review-again").addEventListener("click", load);
    return { load };
  }

  Object.assign(window.lrp4rag, { reviewer, when });
})();

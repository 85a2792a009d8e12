"use strict";
// The form: a question, passages that are pasted or read from files, and an answer that is pasted or asked for.
(() => {
  const { el, plural, call, judged, streamed } = window.lrp4rag;
  const MOST = 64, LONGEST = 200000;
  const SAMPLE = {
    question: "How much parental leave do partners get?",
    passages: [
      "Parental leave. Birth parents are entitled to 16 weeks of paid leave. Partners are entitled to 2 weeks of paid leave, to be taken within the first 8 weeks after the birth.",
      "Requests for parental leave are sent to the HR portal at least 4 weeks before the leave begins, and are subject to manager approval.",
    ],
    response: "Partners are entitled to 4 weeks of paid leave, which they take within the first 8 weeks after the birth. Requests go to the HR portal. The company also pays for a nanny in the first year.",
  };
  const $ = (id) => document.getElementById(id);

  function asker(settings) {
    const form = $("ask"), list = $("passage-list"), result = $("result"), status = $("ask-status");
    const again = $("again"), stop = $("stop"), send = $("send");
    let running = null, count = 0;

    function passage(text = "", name = null) {
      const id = `passage-${(count += 1)}`;
      const area = el("textarea", { id, rows: 4, maxlength: LONGEST, dir: "auto", spellcheck: "false" });
      area.value = text;
      const label = el("label", { for: id });
      const item = el(
        "li",
        {},
        el(
          "div", { class: "row" }, label,
          el("button", { type: "button", class: "quiet remove", onclick: () => { item.remove(); named(); $("add").focus(); } }, "Remove"),
        ),
        area,
      );
      item.dataset.name = name ?? "";
      list.append(item);
      named();
      return area;
    }
    function named() {
      [...list.children].forEach((item, k) => {
        const name = item.dataset.name ? ` · ${item.dataset.name}` : "";
        item.querySelector("label").replaceChildren(el("span", {}, `Passage ${k + 1}`), el("bdi", {}, name));
        item.querySelector(".remove").setAttribute("aria-label", `Remove passage ${k + 1}`);
        item.querySelector(".remove").hidden = list.children.length === 1;
      });
      $("add").disabled = list.children.length >= MOST;
    }
    function fill(sample) {
      $("question").value = sample.question;
      $("response").value = sample.response;
      list.replaceChildren();
      sample.passages.forEach((text) => passage(text));
    }

    async function read(files) {
      const problems = [];
      for (const file of files) {
        try {
          const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
          if (/\u0000/u.test(text)) throw new TypeError();
          if (!text.trim()) problems.push(`“${file.name}” is empty`);
          else if (text.length > LONGEST) problems.push(`“${file.name}” is longer than ${LONGEST.toLocaleString("en")} characters`);
          else if (list.children.length >= MOST) problems.push(`“${file.name}” is one more than ${MOST} passages`);
          else {
            const blank = [...list.children].find((item) => !item.querySelector("textarea").value.trim());
            blank?.remove();
            passage(text.trim(), file.name);
          }
        } catch {
          problems.push(`“${file.name}” is no text file in UTF-8`);
        }
      }
      say(problems.length ? `${problems.join("; ")}.` : `${plural(files.length, "file", "files")} read.`, problems.length > 0);
    }

    function say(words, wrong = false) {
      status.textContent = words;
      status.classList.toggle("failed", wrong);
    }

    // The first field that lacks something has the focus, and is marked as invalid.
    function filled() {
      const passages = [...list.children]
        .map((item) => ({ text: item.querySelector("textarea").value, id: item.dataset.name || undefined }))
        .filter((passage) => passage.text.trim());
      const writes = $("from-model").checked;
      const fields = [
        [$("question"), $("question").value.trim(), "Write the question that the answer is to."],
        [list.querySelector("textarea"), passages.length, "Paste at least one passage: what the answer is to rest on."],
        [$("response"), writes || $("response").value.trim(), "Paste the answer, or let the model write one."],
      ];
      for (const [field, there] of fields) field.toggleAttribute("aria-invalid", !there);
      const lacking = fields.find(([, there]) => !there);
      if (lacking) {
        say(lacking[2], true);
        lacking[0].focus();
        return null;
      }
      return { question: $("question").value.trim(), passages, response: writes ? null : $("response").value };
    }

    function show(state) {
      form.hidden = state !== "asking";
      result.hidden = state === "asking";
      again.hidden = state === "asking";
      stop.hidden = state !== "running";
      $("intro").hidden = state !== "asking";
    }

    async function ask(event) {
      event.preventDefault();
      const request = filled();
      if (!request || running) return;
      running = new AbortController();
      const { signal } = running;
      send.disabled = true;
      say(request.response === null ? "The model writes; each sentence is judged before it is shown …" : "Judging …");
      try {
        if (request.response === null) {
          show("running");
          const head = await streamed(request, result, {
            model: settings.model, signal, progress: (sentences) => say(`${plural(sentences, "sentence", "sentences")} judged …`),
          });
          head.querySelector(".done")?.focus();
        } else {
          const reply = await call("v1/judge", { body: request, signal });
          result.replaceChildren(judged(request, reply));
          show("done");
          result.querySelector(".done").focus();
        }
        say("");
        again.hidden = false;
      } catch (error) {
        const words = error.name === "AbortError" ? "Stopped." : error.message;
        if (request.response === null && !result.querySelector(".sentence")) show("asking");
        say(words, true);
      }
      running = null;
      stop.hidden = true;
      send.disabled = false;
    }

    form.addEventListener("submit", ask);
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    stop.addEventListener("click", () => running?.abort());
    again.addEventListener("click", () => {
      running?.abort();
      say("");
      show("asking");
      $("question").focus();
    });
    $("add").addEventListener("click", () => passage().focus());
    $("files").addEventListener("change", async (event) => {
      await read([...event.target.files]);
      event.target.value = "";
    });
    const drop = $("passages-field");
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      read([...event.dataTransfer.files]);
    });
    $("sample").addEventListener("click", () => { fill(SAMPLE); say("An example is filled in. One word of its answer is wrong, and one sentence is invented."); send.focus(); });
    for (const radio of [$("from-paste"), $("from-model")]) {
      radio.addEventListener("change", () => {
        $("response-field").hidden = $("from-model").checked;
        send.textContent = $("from-model").checked ? "Ask the model" : "Check the answer";
      });
    }
    if (!settings.asks) {
      $("from-model").disabled = true;
      $("no-upstream").hidden = false;
    }
    passage();
    show("asking");
  }

  Object.assign(window.lrp4rag, { asker });
})();

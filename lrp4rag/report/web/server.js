"use strict";
// The server's page: which of its parts is shown, and the token.
(() => {
  const { token, onRefused, call, expertButton, asker, reviewer, historian } = window.lrp4rag;
  const $ = (id) => document.getElementById(id);
  const { asks, tokens, model } = document.body.dataset;
  document.documentElement.classList.add("scripted");
  $("tools").prepend(expertButton());

  const parts = ["check", "review", "history"];
  asker({ asks: asks === "yes", model: model || "any" });
  const review = reviewer((count) => { $("count").textContent = count ? ` (${count})` : ""; });
  const history = historian();

  function show({ focus = true } = {}) {
    const asked = location.hash.slice(1);
    const part = parts.includes(asked) ? asked : "check";
    for (const name of parts) {
      $(name).hidden = name !== part;
      const link = document.querySelector(`nav a[href="#${name}"]`);
      if (name === part) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (part === "review") review.load();
    if (part === "history") history.load();
    if (focus) $(part).querySelector("h1").focus();
  }
  window.addEventListener("hashchange", () => show());

  // The token.
  const form = $("token-form"), field = $("token"), status = $("token-status"), forget = $("forget");
  function tokenShown(wanted) {
    form.hidden = !wanted;
    forget.hidden = !token.get();
  }
  onRefused(() => tokenShown(true));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    status.textContent = "";
    try {
      await call("v1/decisions?limit=1");
      field.value = "";
      tokenShown(false);
      show();
    } catch (error) {
      status.textContent = error.message;
      if (error.status === 401) token.set("");
      forget.hidden = !token.get();
      field.focus();
    }
  });
  forget.addEventListener("click", () => {
    token.set("");
    location.reload();
  });
  tokenShown(tokens === "yes" && !token.get());
  show({ focus: false });
})();

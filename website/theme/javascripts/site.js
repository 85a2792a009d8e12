"use strict";
// What Material's own script adds to a page, for people who use no mouse: what scrolls can be scrolled by keys, and
// landmarks have names that differ.
(() => {
  function complete() {
    for (const block of document.querySelectorAll(".md-typeset__scrollwrap, pre > code")) {
      const attributes = { tabindex: "0", role: "group", "aria-label": block.matches("code") ? "Code" : "Table" };
      const scrolls = block.scrollWidth > block.clientWidth;
      for (const [name, value] of Object.entries(attributes)) {
        if (scrolls) block.setAttribute(name, value);
        else block.removeAttribute(name);
      }
    }
    document.querySelectorAll(".md-code__nav").forEach((nav, k) => {
      if (!nav.hasAttribute("aria-label")) nav.setAttribute("aria-label", `Block of code ${k + 1}`);
    });
  }
  // Parts of a table of contents may have one name: theirs are numbered.
  const known = new Map();
  for (const nav of document.querySelectorAll("nav[aria-label]")) {
    const label = nav.getAttribute("aria-label");
    const name = label.toLowerCase();
    known.set(name, (known.get(name) ?? 0) + 1);
    if (known.get(name) > 1) nav.setAttribute("aria-label", `${label} (${known.get(name)})`);
  }
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
  window.addEventListener("resize", complete);
  complete();
})();

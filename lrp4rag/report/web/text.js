"use strict";
// What all of the page's scripts share. Text of users only ever becomes text nodes, through `visible`.
window.lrp4rag = (() => {
  const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

  // One character for one, as lrp4rag.util.text.visible does: control characters and marks that reorder text are shown.
  function shown(char) {
    const code = char.codePointAt(0);
    if (char === "\n" || (code > 0x9f && code < 0x61c)) return char;
    if (char === "\t" || char === "\r") return " ";
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    if ((code > 0x7f && code < 0xa0) || (code >= 0xd800 && code < 0xe000) || BIDI.test(char)) return "\ufffd";
    return code === 0x2028 || code === 0x2029 ? "\n" : char;
  }
  const visible = (text) => Array.from(String(text), shown).join("");

  // Offsets of the server count characters, and a string of JavaScript counts halves of some.
  const chars = (text) => Array.from(text);

  const SVG = "http://www.w3.org/2000/svg";
  const DRAWN = new Set(["svg", "path", "rect", "line", "text", "g", "polyline", "circle", "title"]);

  // An element. Children are elements or texts; an attribute "onclick" is a listener, and one that is null or false
  // is left out.
  function el(tag, attributes = {}, ...children) {
    const element = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) {
      if (child === null || child === undefined) continue;
      element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
    }
    return element;
  }

  // Text for screen readers only.
  const unseen = (text) => el("span", { class: "unseen" }, text);

  function clipped(text, most = 90) {
    const line = text.replace(/\s+/gu, " ").trim();
    const all = chars(line);
    if (all.length <= most) return line;
    const room = all.slice(0, most).join("");
    const words = room.replace(/\s+\S*$/u, "").replace(/\s+\S*\d\S*$/u, ""); // a number stays with what it counts
    return `${words !== room && words.length > room.length / 2 ? words : all.slice(0, most - 1).join("").trimEnd()}…`;
  }

  // The stretches between the ends of ranges, each with the ranges that it lies in.
  function stretches(start, end, ranges) {
    const edges = new Set([start, end]);
    for (const range of ranges) {
      for (const edge of [range.start, range.end]) if (edge > start && edge < end) edges.add(edge);
    }
    const sorted = [...edges].sort((left, right) => left - right);
    return sorted.slice(1).map((to, k) => ({
      start: sorted[k],
      end: to,
      inside: ranges.filter((range) => range.start <= sorted[k] && to <= range.end),
    }));
  }

  const percent = (share) => (share === null || share === undefined ? "" : `${Math.round(100 * share)} %`);
  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

  return { visible, chars, el, unseen, clipped, stretches, percent, plural };
})();

"use strict";
// Calls of the server. The token is in the page's session and nowhere else.
(() => {
  const KEY = "lrp4rag token";
  const token = {
    get: () => sessionStorage.getItem(KEY) ?? "",
    set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
  };

  class Failure extends Error {
    constructor(status, message) {
      super(message);
      this.status = status;
    }
  }

  const listeners = [];
  // Called when a call is refused for its token.
  const onRefused = (listener) => listeners.push(listener);

  function words(status, problem, after) {
    if (status === 401) return token.get() ? "The server does not know this token." : "The server asks for a token.";
    if (status === 403) return "This token may not do that.";
    if (status === 413) return "That is more than the server takes at a time.";
    if (status === 429) return `The server is busy. Try again in ${after ?? "some"} seconds.`;
    const detail = problem?.detail ?? problem?.errors?.map((error) => `${error.field}: ${error.message}`).join("; ");
    return `${problem?.title ?? "The server failed"}${detail ? `: ${detail}` : ""}`;
  }

  async function reply(path, { body = null, signal = null } = {}) {
    const headers = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};
    const options = { headers, signal, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };
    if (body !== null) {
      Object.assign(options, { method: "POST", body: JSON.stringify(body) });
      headers["Content-Type"] = "application/json";
    }
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (error.name === "TypeError" && /header/i.test(error.message)) throw new Failure(401, "This is no token: it holds letters that tokens do not have.");
      throw new Failure(0, "The server does not answer. Is it still running?");
    }
    if (response.ok) return response;
    const problem = await response.json().catch(() => null);
    if (response.status === 401) for (const listener of listeners) listener();
    throw new Failure(response.status, words(response.status, problem, response.headers.get("Retry-After")));
  }

  const call = async (path, options) => (await reply(path, options)).json();

  // The events of a stream, as they come; an event that is an error is thrown.
  async function* events(path, options) {
    const reader = (await reply(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    for (;;) {
      let chunk;
      try {
        chunk = await reader.read();
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Failure(0, "The connection broke off before the answer was whole.");
      }
      left += chunk.value ?? "";
      const blocks = left.split(/\r?\n\r?\n/);
      left = blocks.pop();
      for (const block of blocks) {
        const data = block.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
        if (!data) continue;
        if (data === "[DONE]") return;
        const event = JSON.parse(data);
        if (event.error) throw new Failure(event.error.code, `The answer is not whole: ${event.error.message}`);
        yield event;
      }
      if (chunk.done) throw new Failure(0, "The answer ended before it was whole.");
    }
  }

  Object.assign(window.lrp4rag, { token, Failure, onRefused, call, events });
})();

// What the page does beyond reading: it is complete without this file.
"use strict";

// "/" moves to the search field, as in many programs.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("input[type=search]");
  const typing = event.target instanceof Element && event.target.matches("input, textarea, select");
  if (event.key === "/" && field && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
  }
});

// A select with data-submit sends its form when it changes.
for (const field of document.querySelectorAll("select[data-submit]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}

// An action may take a while: its button says so, and is not pressed twice.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.dataset.busy) return;
    button.textContent = button.dataset.busy;
    // Later: the name of a disabled button is not sent.
    setTimeout(() => { button.disabled = true; });
  });
}

// Elements with data-events follow a stream. What arrives becomes text, never markup.
for (const element of document.querySelectorAll("[data-events]")) {
  let source = null;
  let place = "";
  let ended = false;
  const change = (apply) => (event) => {
    const { id, text } = JSON.parse(event.data);
    place = event.lastEventId || place;
    const target = document.getElementById(id);
    if (target) apply(target, text);
  };
  const append = change((target, text) => {
    const box = target.closest(".code") || target;
    const follows = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    target.append(text);
    if (follows) box.scrollTop = box.scrollHeight;
  });
  const set = change((target, text) => {
    if (target instanceof HTMLProgressElement) target.value = Number(text);
    else target.textContent = text;
  });
  const follow = () => {
    const address = new URL(element.dataset.events, location.href);
    if (place) address.searchParams.set("after", place);
    source = new EventSource(address);
    source.addEventListener("append", append);
    source.addEventListener("set", set);
    source.addEventListener("reload", () => { source.close(); location.reload(); });
    source.addEventListener("end", () => { source.close(); ended = true; });
  };
  // A browser has six connections for a page: tabs that nobody sees must not use them up.
  document.addEventListener("visibilitychange", () => {
    if (ended) return;
    source?.close();
    source = null;
    if (document.visibilityState === "visible") follow();
  });
  if (document.visibilityState === "visible") follow();
}

// The pages work without this script. It reads a page again when the queue has changed.
"use strict";
(() => {
  const box = document.getElementById("live");
  if (!box) return;
  const key = "pawl-live";
  let source = null, reading = false, missed = false;

  // busy reports whether the user is in the middle of something that a new page would undo.
  const busy = () => {
    const main = document.getElementById("content"), at = document.activeElement;
    const typing = at && main.contains(at) && at.matches("input, select, textarea");
    const marked = main.querySelector("#marked input:checked");
    return typing || marked || document.hidden || String(getSelection()) !== "" || main.querySelector("form[method=post]");
  };

  const read = async () => {
    if (reading || busy()) { missed = true; return; }
    reading = true;
    missed = false;
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" }, redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const now = document.getElementById("content"), next = page.getElementById("content");
      if (!answer.ok || !next || busy()) return;
      const open = [...now.querySelectorAll("details")].map(d => d.open);
      const links = [...now.querySelectorAll("a, button, summary, [tabindex]")], at = links.indexOf(document.activeElement);
      now.replaceChildren(...next.childNodes);
      now.querySelectorAll("details").forEach((d, i) => { if (open[i]) d.open = true; });
      if (at >= 0) [...now.querySelectorAll("a, button, summary, [tabindex]")][at]?.focus({ preventScroll: true });
    } catch (e) {
      missed = true; // the next message tries again
    } finally {
      reading = false;
    }
  };

  const set = on => {
    box.checked = on;
    try { localStorage.setItem(key, on ? "on" : "off"); } catch (e) { /* storage may be closed */ }
    if (source) source.close();
    source = null;
    if (!on) return;
    source = new EventSource("events?since=" + box.dataset.news);
    source.onmessage = read;
  };

  box.parentElement.hidden = false;
  box.addEventListener("change", () => set(box.checked));
  document.addEventListener("visibilitychange", () => { if (!document.hidden && missed && box.checked) read(); });
  let stored = null;
  try { stored = localStorage.getItem(key); } catch (e) { /* storage may be closed */ }
  set(stored !== "off");
})();

// Search: gangs, nodes and solves by any part of their names.

import { el, phaseText } from "./dom.js";
import { fullName, store } from "./store.js";

const MOST = 12;

function find(text) {
  const wanted = text.toLowerCase();
  const found = [];
  const offer = (name, kind, href) => { if (found.length < MOST && name.toLowerCase().includes(wanted)) found.push({ name, kind, href }); };
  for (const gang of store.gangs.values()) offer(`${fullName(gang)}`, `gang, ${phaseText(gang.phase).toLowerCase()}`, `#/gang/${encodeURIComponent(gang.id)}`);
  for (const name of store.nodes.keys()) if (name) offer(name, "node", `#/node/${encodeURIComponent(name)}`);
  for (const id of store.solves.keys()) if (id.startsWith(wanted)) offer(id, "solve", `#/solve/${encodeURIComponent(id)}`);
  return found;
}

export function setUpSearch(input, list) {
  let [found, at] = [[], 0];
  const open = (entry) => {
    if (!entry) return;
    input.value = "";
    draw();
    input.blur();
    location.hash = entry.href;
  };
  const draw = () => {
    found = input.value.trim() ? find(input.value.trim()) : [];
    at = Math.min(at, Math.max(0, found.length - 1));
    const nothing = input.value.trim() && !found.length ? [el("li", { class: "muted" }, "No matches.")] : [];
    list.replaceChildren(...nothing, ...found.map((entry, index) => el("li", {
      role: "option", id: `found-${index}`, "aria-selected": String(index === at), onpointerdown: (event) => { event.preventDefault(); open(entry); },
    }, el("span", {}, entry.name), el("span", { class: "muted" }, entry.kind))));
    list.hidden = !list.children.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (found.length) input.setAttribute("aria-activedescendant", `found-${at}`);
    else input.removeAttribute("aria-activedescendant");
  };
  input.addEventListener("input", () => { at = 0; draw(); });
  input.addEventListener("focus", draw);
  input.addEventListener("blur", () => { list.hidden = true; });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length);
      draw();
    } else if (event.key === "Enter") open(found[at]);
    else if (event.key === "Escape") { input.value = ""; draw(); input.blur(); }
  });
  return input;
}

// The frame of the console: views, search, keys, theme, and the event stream.

import { follow, keepToken, takeToken } from "./bus.js";
import { count, el, refreshAges } from "./dom.js";
import { fleetView } from "./fleet.js";
import { gangView } from "./gang.js";
import { gangsView } from "./gangs.js";
import { nodeView } from "./node.js";
import { queuesView } from "./queues.js";
import { setUpSearch } from "./search.js";
import { solveView, solvesView } from "./solves.js";
import { listen, merge, store, waiting } from "./store.js";

const VIEWS = { fleet: fleetView, gangs: gangsView, gang: gangView, node: nodeView, queues: queuesView, solves: solvesView, solve: solveView };
const TABS = { fleet: "fleet", node: "fleet", gangs: "gangs", gang: "gangs", queues: "queues", solves: "solves", solve: "solves" };
const KEYS = [["/", "search"], ["f  g  q  s", "fleet, gangs, queues, solves"], ["j  k", "next and previous row"], ["Enter", "open it"], ["← ↑ → ↓", "choose a node in the picture"], ["Esc", "back"], ["t", "dark or light"], ["?", "these keys"]];
const AGES_MS = 1000;
const main = document.getElementById("main");
let current = null;
let told = false;

function show() {
  const [, name, ...rest] = location.hash.split("/");
  const view = VIEWS[name] ? name : "fleet";
  current?.stop?.();
  current = VIEWS[view](...rest.map(decodeURIComponent));
  document.title = `${current.title} · Moorings`;
  for (const tab of document.querySelectorAll("nav a")) {
    if (tab.dataset.view === TABS[view]) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  main.replaceChildren(...current.elements);
  window.scrollTo(0, 0);
  if (told) current.start();
}

function onUpdate(update) {
  merge(update);
  if (!update.whole) return;
  if (!told) {
    told = true;
    current.start();
    performance.mark("first-picture");
  }
}

listen((update) => {
  if (told) current.update(update);
  const waits = waiting().length;
  const badge = document.getElementById("waiting-count");
  badge.textContent = waits;
  badge.hidden = waits === 0;
  badge.title = `${waits} waiting`;
  if (update.about) showNotice(store.about);
});

function showNotice({ silences = [], unread, lastUnread = [] }) {
  const lines = [...silences];
  if (unread) lines.push(`${count(unread, "message")} on the bus skipped as unreadable; the last: ${lastUnread.map((each) => `${each.subject}: ${each.why}`).pop() ?? ""}`);
  const notice = document.getElementById("notice");
  notice.replaceChildren(...lines.map((line) => el("div", {}, line)));
  notice.hidden = lines.length === 0;
}

function onState(state) {
  const live = document.getElementById("live");
  live.dataset.state = state;
  live.textContent = { live: "live", lost: "reconnecting", refused: "no access" }[state];
  if (state === "refused") askForToken();
}

function askForToken() {
  const input = el("input", { type: "password", "aria-label": "Token or link", autocomplete: "off" });
  const form = el("form", { class: "form", onsubmit: (event) => { event.preventDefault(); keepToken(input.value); location.reload(); } }, input, el("div", {}, el("button", { type: "submit" }, "Open")));
  main.replaceChildren(el("section", { class: "gate" }, el("h1", {}, "This console needs its token"), el("p", {}, "Open the link that the command printed, or paste it here. Each start of the console makes a new one."), form));
  input.focus();
}

// --- theme ---------------------------------------------------------------------------

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (told) (current?.redraw ?? current?.start)?.();
}

function toggleTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("moorings-theme", theme);
  setTheme(theme);
}

const preferred = window.matchMedia("(prefers-color-scheme: dark)");
setTheme(localStorage.getItem("moorings-theme") ?? (preferred.matches ? "dark" : "light"));
preferred.addEventListener("change", () => { if (!localStorage.getItem("moorings-theme")) setTheme(preferred.matches ? "dark" : "light"); });

// --- keys ----------------------------------------------------------------------------

function moveRow(step) {
  const links = [...main.querySelectorAll("tr.row td:first-child a")];
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
}

function showKeys() {
  const dialog = document.getElementById("keys");
  dialog.replaceChildren(el("h2", {}, "Keys"), el("dl", {}, KEYS.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)])),
    el("form", { method: "dialog" }, el("button", { class: "quiet" }, "Close")));
  dialog.showModal();
}

const search = setUpSearch(document.getElementById("search"), document.getElementById("found"));
const GO = { f: "#/fleet", g: "#/gangs", q: "#/queues", s: "#/solves" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (document.getElementById("keys").open) return;
  if (event.key === "/") { event.preventDefault(); search.focus(); }
  else if (event.key in GO) location.hash = GO[event.key];
  else if (event.key === "j") moveRow(1);
  else if (event.key === "k") moveRow(-1);
  else if (event.key === "t") toggleTheme();
  else if (event.key === "?") showKeys();
  else if (event.key === "Escape") history.back();
});
document.getElementById("theme").addEventListener("click", toggleTheme);
document.getElementById("help").addEventListener("click", showKeys);
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) { takeToken(); location.reload(); } else if (location.hash.startsWith("#/")) show();
});
setInterval(() => refreshAges(main), AGES_MS);

takeToken();
show();
follow(onUpdate, onState);

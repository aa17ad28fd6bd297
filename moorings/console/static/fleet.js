// The fleet view: totals, the picture, its legend, and what the pointer or keyboard is at.

import { STATES, colorOf } from "./colors.js";
import { count, el, gangLink } from "./dom.js";
import { groupKeys } from "./layout.js";
import { Picture } from "./picture.js";
import { OVER, fullName, store, waiting } from "./store.js";

const MODES = { state: "State", gang: "Gang", kind: "Class and model" };
const MOST_IN_LEGEND = 24;
const MOST_KINDS = 6;
const COUNTED = { F: "free", H: "held", S: "held", U: "out", T: "out", A: "out" };
const MOST_IN_TIP = 6;
let kept = { mode: "state", group: null };

export function fleetView() {
  const canvas = el("canvas", { tabIndex: 0, role: "application", "aria-label": "Fleet: arrow keys choose a node, Enter opens it" });
  const tip = el("div", { class: "tip", hidden: true });
  const said = el("p", { class: "muted", role: "status" }, "Choose a node with the pointer or the arrow keys; Enter opens it.");
  const frame = el("div", { class: "picture" }, canvas, tip);
  const picture = new Picture(canvas, store);
  picture.mode = kept.mode;
  const tiles = el("div", { class: "tiles" });
  const why = el("div", {});
  const legend = el("div", { class: "legend", "aria-label": "Legend" });
  const groups = el("select", { "aria-label": "Group by", onchange: () => { kept.group = picture.group = groups.value; picture.drawAll(); } });
  const modes = el("div", { class: "chips", role: "group", "aria-label": "Colour by" });
  for (const [mode, name] of Object.entries(MODES)) {
    modes.append(el("button", {
      type: "button", class: "quiet", "aria-pressed": String(mode === kept.mode), "data-mode": mode,
      onclick: () => {
        kept.mode = picture.mode = mode;
        picture.only = null;
        for (const button of modes.children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
        picture.drawAll();
        drawLegend(legend, picture);
      },
    }, name));
  }
  const root = el("div", { class: "card" },
    el("div", { class: "controls" }, el("div", { class: "choose" }, "Colour by", modes), el("label", {}, "Group by", groups)),
    legend, frame, said);

  const draw = () => {
    fillGroups(groups, picture);
    picture.drawAll();
    drawTotals(tiles, why);
    drawLegend(legend, picture);
    performance.mark("fleet-drawn");
  };
  listenToPointer(canvas, picture, tip);
  listenToKeys(canvas, picture, said);
  const resized = new ResizeObserver(() => { if (picture.layout) picture.drawAll(); });
  resized.observe(frame);
  return {
    title: "Fleet",
    elements: [el("h1", { class: "unseen" }, "Fleet"), tiles, why, root],
    start: draw,
    update(update) {
      if (update.whole || !picture.layout) return draw();
      const names = Object.keys(update.nodes ?? {});
      if (names.length) {
        picture.drawChanged(names);
        drawLegend(legend, picture);
      }
      if (names.length || update.gangs) drawTotals(tiles, why);
      performance.mark("update-drawn", { detail: { nodes: names } });
    },
    redraw: draw,
    stop: () => resized.disconnect(),
  };
}

function fillGroups(groups, picture) {
  const keys = [...groupKeys(store.nodes.values()), ""];
  if (kept.group === null || !keys.includes(kept.group)) kept.group = keys[0];
  picture.group = kept.group;
  if ([...groups.options].map((option) => option.value).join() !== keys.join()) {
    groups.replaceChildren(...keys.map((key) => el("option", { value: key }, key || "nothing")));
  }
  groups.value = picture.group;
}

function drawTotals(tiles, why) {
  const nodes = [...store.nodes.values()].filter((node) => node.name);
  const ready = nodes.filter((node) => node.status === "ready").length;
  const living = [...store.gangs.values()].filter((gang) => !OVER.has(gang.phase)).length;
  const waits = waiting();
  const kinds = [...countKinds()].sort((a, b) => b[1].all - a[1].all);
  const hidden = kinds.length - MOST_KINDS;
  const tile = (number, text, href) => el(href ? "a" : "div", { class: "tile", href }, el("b", {}, number), el("span", {}, text));
  tiles.replaceChildren(
    tile(nodes.length.toLocaleString("en"), `${nodes.length === 1 ? "node" : "nodes"}, ${ready === nodes.length ? "all ready" : `${nodes.length - ready} not ready`}`),
    tile(living.toLocaleString("en"), `${living === 1 ? "gang" : "gangs"}, ${waits.length} waiting`, "#/gangs"),
    ...kinds.slice(0, MOST_KINDS).map(([kind, counts]) => el("div", { class: "tile kind" },
      el("b", {}, counts.free.toLocaleString("en"), el("small", {}, ` of ${counts.all.toLocaleString("en")} free`)), el("span", {}, describeKind(kind)), el("span", {}, tellRest(counts)))),
    ...(hidden > 0 ? [tile(`+${hidden}`, "more kinds of device, in the legend")] : []));
  why.replaceChildren();
  if (waits.length) {
    const oldest = waits.reduce((a, b) => (a.since <= b.since ? a : b));
    why.append(el("div", { class: "card" }, "Waiting longest: ", gangLink(oldest.id, fullName(oldest)), ` — ${oldest.reason || "not decided yet"}`));
  }
}

// Each device once, by what matters most of it: one that is held and unhealthy is unhealthy.
function countKinds() {
  const kinds = new Map();
  for (const node of store.nodes.values()) {
    let at = 0;
    for (const [kind, number] of node.kinds) {
      if (!kinds.has(kind)) kinds.set(kind, { all: 0, free: 0, held: 0, out: 0 });
      const counts = kinds.get(kind);
      for (const state of node.states.slice(at, at + number)) {
        counts.all += 1;
        counts[COUNTED[state]] += 1;
      }
      at += number;
    }
  }
  return kinds;
}

function tellRest({ held, out }) {
  const parts = [held ? `${held.toLocaleString("en")} held` : "", out ? `${out.toLocaleString("en")} unhealthy, tainted or unavailable` : ""].filter(Boolean);
  return parts.join(" · ") || "none held";
}

function drawLegend(legend, picture) {
  const counts = picture.count();
  const labels = new Map(Object.entries(STATES).map(([code, { name }]) => [code, name]));
  const shown = counts.slice(0, MOST_IN_LEGEND).map(([key, number]) => {
    const color = picture.colorOf(key);
    const text = picture.mode === "kind" ? describeKind(key) : labels.get(key) ?? key;
    return el("button", {
      type: "button", class: "quiet", "aria-pressed": String(picture.only === key), title: "Show only these",
      onclick: () => {
        picture.only = picture.only === key ? null : key;
        picture.drawAll();
        drawLegend(legend, picture);
      },
    }, el("span", { class: "swatch", style: { background: color } }), `${text} `, el("span", { class: "muted num" }, number.toLocaleString("en")));
  });
  const hidden = counts.length - shown.length;
  legend.replaceChildren(...shown, ...(hidden > 0 ? [el("span", { class: "muted" }, `and ${hidden} more`)] : []));
}

// A kind by the classes that may choose it: `gpu.example.com: Model 80GB`.
function describeKind(kind) {
  const [driver, ...model] = kind.split(" ");
  const classes = [...(store.about.classes?.[driver] ?? []), ...(store.about.classes?.[""] ?? [])];
  const name = classes.length ? `class ${classes.join(", ")}` : driver;
  return model.length ? `${name}: ${model.join(" ")}` : name;
}

function describe(node) {
  const counts = [...node.states].reduce((all, state) => ({ ...all, [state]: (all[state] ?? 0) + 1 }), {});
  const parts = Object.entries(counts).map(([state, number]) => `${number} ${STATES[state].name.toLowerCase()}`);
  return `${node.name || "devices of no single node"}: ${node.status}; ${parts.join(", ") || "no devices"}`;
}

function listenToPointer(canvas, picture, tip) {
  canvas.addEventListener("pointermove", (event) => {
    const name = picture.nodeAt(event.offsetX, event.offsetY);
    picture.choose(name);
    tip.hidden = name === null;
    if (name === null) return;
    const node = store.nodes.get(name);
    const gangs = Object.entries(node.gangs).map(([gang, devices]) => el("div", {},
      el("span", { class: "swatch", style: { background: colorOf(gang || "(no gang)") } }), `${gang || "(no gang)"} `, el("span", { class: "muted" }, count(devices.length, "device"))));
    tip.replaceChildren(el("div", {}, describe(node)), ...gangs.slice(0, MOST_IN_TIP));
    const right = event.offsetX > canvas.clientWidth / 2;
    tip.style.left = right ? "" : `${event.offsetX + 14}px`;
    tip.style.right = right ? `${canvas.clientWidth - event.offsetX + 14}px` : "";
    tip.style.top = `${Math.max(0, Math.min(event.offsetY + 14, canvas.clientHeight - 110))}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; picture.choose(null); });
  canvas.addEventListener("click", (event) => {
    const name = picture.nodeAt(event.offsetX, event.offsetY);
    if (name !== null) location.hash = `#/node/${encodeURIComponent(name)}`;
  });
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function listenToKeys(canvas, picture, said) {
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && picture.chosen !== null) {
      location.hash = `#/node/${encodeURIComponent(picture.chosen)}`;
    } else if (event.key in ARROWS) {
      event.preventDefault();
      picture.choose(picture.neighbour(picture.chosen, ...ARROWS[event.key]));
      const node = store.nodes.get(picture.chosen);
      if (node) said.textContent = describe(node);
    }
  });
}

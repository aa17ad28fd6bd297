// The fleet drawn on a canvas: all of it once, then only the nodes that changed.

import { STATES, colorOf, css, palette } from "./colors.js";
import { layOut } from "./layout.js";

export class Picture {
  constructor(canvas, store) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.store = store;
    this.mode = "state";
    this.group = "";
    this.only = null; // highlight: a state, a gang or a kind, by the mode
    this.chosen = null; // the node that the keyboard or the pointer is at
    this.layout = null;
  }

  drawAll() {
    const nodes = [...this.store.nodes.values()];
    const width = Math.max(280, this.canvas.parentElement.clientWidth);
    this.layout = layOut(nodes, this.group, width);
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.max(1, Math.round(this.layout.height * ratio));
    this.canvas.style.height = `${this.layout.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.readColors();
    this.context.clearRect(0, 0, width, this.layout.height);
    for (const box of this.layout.boxes) this.drawBox(box);
    for (const node of nodes) this.drawNode(node);
  }

  readColors() {
    this.states = Object.fromEntries(Object.entries(STATES).map(([code, { css: name }]) => [code, css(name)]));
    this.theme = { line: css("--line"), text: css("--text"), muted: css("--muted"), surface: css("--surface"), raised: css("--raised"), accent: css("--accent"), sick: css("--sick") };
    const kinds = this.mode === "kind" ? [...this.store.nodes.values()].flatMap((node) => node.kinds.map(([kind]) => kind)) : [];
    this.byName = palette([...new Set(kinds)].sort());
  }

  // Draw the groups of the nodes that an update names; all where a node came, went or moved.
  drawChanged(names) {
    const moved = names.some((name) => this.layout.tiles.get(name)?.group !== this.store.nodes.get(name)?.groups[this.group]);
    if (moved || !this.layout) return this.drawAll();
    const changed = new Set(names);
    for (const box of this.layout.boxes) {
      if (!box.nodes.some((name) => changed.has(name))) continue;
      this.drawBox(box);
      for (const name of box.nodes) this.drawNode(this.store.nodes.get(name));
    }
  }

  drawBox(box) {
    const { context: pen, theme } = this;
    pen.fillStyle = theme.raised;
    pen.strokeStyle = theme.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 6);
    pen.fill();
    pen.stroke();
    pen.fillStyle = theme.muted;
    pen.font = "600 11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    const states = box.nodes.map((each) => this.store.nodes.get(each).states).join("");
    const free = states.split("F").length - 1;
    const left = `${free} of ${states.length} free`;
    const name = fit(pen, box.name || "no group", box.width - 14);
    pen.fillText(name, box.x + 7, box.y + 12);
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    const room = box.width - 28 - pen.measureText(name).width;
    const short = pen.measureText(left).width <= room ? left : `${free}/${states.length}`;
    if (pen.measureText(short).width > room) return;
    pen.textAlign = "right";
    pen.fillText(short, box.x + box.width - 7, box.y + 12);
    pen.textAlign = "left";
  }

  drawNode(node) {
    const place = node && this.layout.tiles.get(node.name);
    if (!place) return;
    const { context: pen, theme } = this;
    const { tile } = this.layout;
    const usable = node.status === "ready";
    pen.globalAlpha = 1;
    pen.fillStyle = theme.raised;
    pen.fillRect(place.x - 1.5, place.y - 1.5, tile.width + 3, tile.height + 3);
    pen.fillStyle = theme.surface;
    pen.strokeStyle = this.chosen === node.name ? theme.accent : usable ? theme.line : theme.sick;
    pen.lineWidth = this.chosen === node.name ? 2 : 1;
    pen.setLineDash(usable ? [] : [3, 2]);
    pen.beginPath();
    pen.roundRect(place.x + 0.5, place.y + 0.5, tile.width - 1, tile.height - 1, tile.named ? 5 : 2);
    pen.fill();
    pen.stroke();
    pen.setLineDash([]);
    if (tile.named) {
      pen.fillStyle = usable ? theme.text : theme.sick;
      pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
      pen.textBaseline = "middle";
      const label = usable ? node.name : `${node.name} (${node.status})`;
      pen.fillText(fit(pen, label, tile.width - 10), place.x + tile.pad, place.y + 10);
    }
    this.drawDevices(node, place);
  }

  drawDevices(node, place) {
    const { context: pen } = this;
    const { tile } = this.layout;
    const top = place.y + tile.pad + (tile.named ? 16 : 0);
    const faded = node.status === "ready" ? 1 : 0.45;
    const keys = this.keysOf(node);
    for (let index = 0; index < node.states.length; index += 1) {
      const x = place.x + tile.pad + (index % tile.columns) * (tile.cell + tile.gap);
      const y = top + Math.floor(index / tile.columns) * (tile.cell + tile.gap);
      pen.globalAlpha = this.only === null || keys[index] === this.only ? faded : 0.13;
      pen.fillStyle = this.colorOf(keys[index]);
      pen.fillRect(x, y, tile.cell, tile.cell);
      if (node.states[index] === "U" && tile.cell > 6) cross(pen, x, y, tile.cell, this.theme.surface);
    }
    pen.globalAlpha = 1;
  }

  // What the colour of each device of a node stands for.
  keysOf(node) {
    if (this.mode === "state") return [...node.states];
    if (this.mode === "kind") return node.kinds.flatMap(([kind, number]) => Array(number).fill(kind));
    const keys = [...node.states].map((state) => (state === "H" || state === "S" ? "(no gang)" : state));
    for (const [gang, devices] of Object.entries(node.gangs)) {
      for (const index of devices) keys[index] = gang || "(no gang)";
    }
    return keys;
  }

  colorOf(key) {
    if (key in this.states) return this.states[key];
    if (!this.byName.has(key)) this.byName.set(key, colorOf(key));
    return this.byName.get(key);
  }

  // How many devices have each colour, the most first.
  count() {
    const counts = new Map();
    for (const node of this.store.nodes.values()) {
      for (const key of this.keysOf(node)) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]);
  }

  choose(name) {
    const before = this.chosen;
    if (before === name) return;
    this.chosen = name;
    for (const each of [before, name]) if (each !== null) this.drawNode(this.store.nodes.get(each));
  }

  nodeAt(x, y) {
    const { tile, tiles } = this.layout;
    for (const place of tiles.values()) {
      if (x >= place.x && x < place.x + tile.width && y >= place.y && y < place.y + tile.height) return place.node;
    }
    return null;
  }

  // The nearest node in a direction, as the arrows go.
  neighbour(name, dx, dy) {
    const from = this.layout.tiles.get(name);
    if (!from) return this.layout.tiles.keys().next().value ?? null;
    let [best, least] = [name, Infinity];
    for (const place of this.layout.tiles.values()) {
      const [x, y] = [place.x - from.x, place.y - from.y];
      const ahead = x * dx + y * dy;
      const aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (ahead > 0 && ahead + 3 * aside < least) [best, least] = [place.node, ahead + 3 * aside];
    }
    return best;
  }
}

function fit(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let short = text;
  while (short.length > 1 && pen.measureText(`${short}…`).width > width) short = short.slice(0, -1);
  return `${short}…`;
}

function cross(pen, x, y, size, color) {
  pen.strokeStyle = color;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x + 3, y + 3);
  pen.lineTo(x + size - 3, y + size - 3);
  pen.moveTo(x + size - 3, y + 3);
  pen.lineTo(x + 3, y + size - 3);
  pen.stroke();
}

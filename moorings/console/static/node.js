// One node: what it is, and who holds which of its devices.

import { ask } from "./bus.js";
import { STATES } from "./colors.js";
import { ageOf, badge, count, el, gangLink, link, section } from "./dom.js";
import { gangNamed } from "./store.js";

const CODES = Object.fromEntries(Object.entries(STATES).map(([code, { name }]) => [name, code]));
const WORST = ["Unavailable", "Unhealthy", "Tainted", "Shared", "Held", "Free"];

export function nodeView(name) {
  const head = el("div", { class: "card" });
  const root = el("div", { class: "form" });
  let stopped = false;
  const load = async () => {
    try {
      const shown = await ask(`/api/nodes/${encodeURIComponent(name)}`);
      if (!stopped) draw(shown, head, root);
    } catch (error) {
      if (!stopped) head.replaceChildren(el("h1", {}, name), el("p", { class: "no" }, error.message));
    }
  };
  return {
    title: name,
    elements: [head, root],
    start: load,
    update: (update) => { if (update.whole || name in (update.nodes ?? {})) load(); },
    stop: () => { stopped = true; },
  };
}

function draw({ record, node, devices }, head, root) {
  const groups = Object.entries(record.groups).map(([key, value]) => `${key} ${value}`);
  const free = devices.filter((device) => device.states.includes("Free")).length;
  head.replaceChildren(
    el("div", { class: "crumb" }, link("#/fleet", "Fleet"), groups.length ? ` / ${groups.join(" / ")}` : ""),
    el("div", { class: "head" }, el("h1", {}, record.name || "Devices of no single node"), badge(record.status), el("span", { class: "muted grow" }, `${count(devices.length, "device")}, ${free} free`)));
  root.replaceChildren(...holdersSection(record), devicesSection(devices), aboutSection(node));
}

function holdersSection(record) {
  const holders = Object.entries(record.gangs);
  if (!holders.length) return [];
  return [section("Who holds what", el("div", { class: "chips" }, holders.map(([name, held]) => {
    const gang = gangNamed(name);
    return el("span", { class: "badge" }, gang ? gangLink(gang.id, name) : name || "no gang", ` · ${count(held.length, "device")}`);
  })))];
}

function devicesSection(devices) {
  const byDriver = new Map();
  for (const device of devices) {
    if (!byDriver.has(device.driver)) byDriver.set(device.driver, []);
    byDriver.get(device.driver).push(device);
  }
  const parts = [...byDriver].flatMap(([driver, own]) => [el("h3", { class: "muted" }, driver), el("div", { class: "devices" }, own.map(drawDevice))]);
  return section("Devices", ...(parts.length ? parts : [el("p", { class: "muted" }, "No devices.")]));
}

function drawDevice(device) {
  const worst = WORST.find((state) => device.states.includes(state));
  const rows = [["State", device.states.join(", ")]];
  if (device.health && device.health !== "Healthy") rows.push(["Health", el("span", {}, `${device.health} ${device.healthMessage} `, device.healthSince ? ageOf(device.healthSince) : "")]);
  for (const holder of device.holders) {
    const gang = gangNamed(holder.gang);
    rows.push(["Gang", gang ? gangLink(gang.id, holder.gang) : holder.gang || "none"]);
    if (holder.pods.length) rows.push(["Pod", holder.pods.join(", ")]);
    if (holder.claim) rows.push(["Claim", holder.claim]);
    if (holder.since) rows.push(["Held for", ageOf(holder.since)]);
  }
  if (device.taints.length) rows.push(["Taints", device.taints.join(", ")]);
  if (device.why) rows.push(["Why", device.why]);
  const attributes = Object.entries(device.attributes).map(([key, value]) => [key, Object.values(value).filter((each) => each !== null).join(", ")]);
  const capacity = Object.entries(device.capacity).map(([key, value]) => [key, String(value.value)]);
  return el("div", { class: `device state-${CODES[worst]}`, "data-device": device.name }, el("b", {}, device.name), list(rows),
    el("details", {}, el("summary", {}, "Attributes"), list([...capacity, ...attributes])));
}

const list = (rows) => el("dl", {}, rows.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));

function aboutSection(node) {
  const labels = Object.entries(node.labels ?? {});
  const free = Object.entries(node.free ?? {});
  return section("About the node",
    node.taints?.length ? el("p", {}, `Taints: ${node.taints.map((taint) => `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`).join(", ")}`) : null,
    free.length ? el("p", {}, `Other resources left: ${free.map(([name, left]) => describeLeft(name, left)).join(", ")}`) : null,
    el("details", {}, el("summary", {}, count(labels.length, "label")), list(labels)));
}

const UNITS = ["", "Ki", "Mi", "Gi", "Ti"];

function describeLeft(name, left) {
  if (name === "cpu") return `${left / 1000} CPU`;
  let [value, unit] = [left, 0];
  while (/memory|storage/.test(name) && value >= 1024 && value % 1024 === 0 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${name} ${value}${UNITS[unit]}`;
}

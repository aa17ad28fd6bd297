// Elements from values. Everything goes in as text: nothing is ever parsed as HTML.

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") Object.assign(element.style, value);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function table(columns, rows, properties = {}) {
  return el("div", { class: "scroll" },
    el("table", properties,
      el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)))),
      el("tbody", {}, rows)));
}

export function cells(columns, values) {
  return values.map((value, index) => el("td", { "data-label": columns[index] }, value));
}

export const link = (href, ...children) => el("a", { href }, ...children);
export const gangLink = (id, text) => link(`#/gang/${encodeURIComponent(id)}`, text);
export const nodeLink = (name) => link(`#/node/${encodeURIComponent(name)}`, name || "(no node)");
export const solveLink = (id) => link(`#/solve/${encodeURIComponent(id)}`, id.slice(0, 12));
export const badge = (word, text = word) => el("span", { class: `badge phase-${word.toLowerCase()}`, title: text === word ? null : word }, text);

// Phases of a gang, in the words of who waits for it.
const PHASES = { Waiting: "Not submitted", Pending: "Waiting", Decided: "Devices chosen", Allocated: "Has devices" };
export const phaseText = (phase) => PHASES[phase] ?? phase;
export const phaseBadge = (phase) => badge(phase, phaseText(phase));

export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

export function age(since) {
  const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h${minutes % 60}m` : `${Math.floor(hours / 24)}d${hours % 24}h`;
}

// The age of something, kept up to date while it is shown.
export function ageOf(since) {
  return el("time", { dateTime: since || "", title: clock(since), "data-since": since || "" }, age(since));
}

// A time on the reader's own clock, with its zone: `2026-11-28 14:03:05 GMT+1`.
export function clock(at, milliseconds = false) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const fraction = milliseconds ? `.${String(date.getMilliseconds()).padStart(3, "0")}` : "";
  return `${day} ${parts}${fraction} ${zone(date)}`;
}

function zone(date) {
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(date);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

export function clockOf(at, milliseconds = false) {
  return el("time", { dateTime: at || "" }, clock(at, milliseconds));
}

export function refreshAges(root) {
  for (const element of root.querySelectorAll("time[data-since]")) {
    const text = age(element.dataset.since);
    if (element.textContent !== text) element.textContent = text;
  }
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

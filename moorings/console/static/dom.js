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
export const phaseBadge = (phase) => el("span", { class: `badge phase-${phase.toLowerCase()}` }, phase);

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
  return el("time", { dateTime: since || "", title: since || "", "data-since": since || "" }, age(since));
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

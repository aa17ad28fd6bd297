// Parts of a solver's answer that solves and what-if share.

import { cells, el, table } from "./dom.js";

export const noDevices = () => el("span", { class: "badge phase-none" }, "no devices");

export function objectiveTable(tiers) {
  const columns = ["Tier", "Value", "Bound", "Proven"];
  const rows = tiers.map((tier) => el("tr", {}, ...cells(columns, [
    el("span", {}, el("b", {}, tier.tier), `: ${tier.what}`, el("span", { class: "muted" }, ` (${tier.best}${tier.priority === null ? "" : `, priority ${tier.priority}`})`)),
    tier.value.toLocaleString("en"), tier.bound === null ? "none" : tier.bound.toLocaleString("en"),
    tier.bound === tier.value ? el("span", { class: "ok" }, "best possible") : el("span", { class: "muted" }, tier.bound === null ? "no bound" : `gap ${Math.abs(tier.bound - tier.value).toLocaleString("en")}`),
  ])));
  return table(columns, rows, { class: "cards" });
}

// Recorded solves: their list, and one with its batch, its answer, replay and what-if.

import { noDevices, objectiveTable } from "./answers.js";
import { ask } from "./bus.js";
import { ageOf, cells, count, el, gangLink, link, nodeLink, phaseBadge, section, solveLink, table } from "./dom.js";
import { store } from "./store.js";
import { whatIfSection } from "./whatif.js";

const COLUMNS = ["Solve", "At", "Status", "Gangs", "Allocated", "Waiting", "Rejected", "Time"];
const PAGE = 200;
const MOST_PLACES = 6;

export function solvesView() {
  const list = el("div", {});
  const draw = () => {
    const rows = [...store.solves.values()].sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, PAGE).map((solve) => el("tr", { class: "row" }, ...cells(COLUMNS, [
      solveLink(solve.id), ageOf(solve.at), phaseBadge(solve.status), solve.gangs, solve.allocated, solve.pending, solve.rejected, `${solve.milliseconds} ms`,
    ])));
    list.replaceChildren(rows.length ? table(COLUMNS, rows, { class: "cards solves" }) : el("p", { class: "muted" }, "No solves yet."));
  };
  return {
    title: "Solves",
    elements: [el("section", {}, el("h1", {}, "Recorded solves"), el("p", { class: "muted" }, "Each is recorded with its whole input: it can be solved again to the same bytes, or with something changed."), list)],
    start: draw,
    update: (update) => { if (update.solves || update.whole) draw(); },
  };
}

export function solveView(id, given) {
  const head = el("div", { class: "card" });
  const root = el("div", { class: "form" });
  let stopped = false;
  const load = async () => {
    try {
      const solve = await ask(`/api/solves/${encodeURIComponent(id)}`);
      if (!stopped) draw(solve, head, root, given ? JSON.parse(given) : null);
    } catch (error) {
      if (!stopped) head.replaceChildren(el("h1", {}, "Solve"), el("p", { class: "no" }, error.message));
    }
  };
  return { title: "Solve", elements: [head, root], start: load, update() {}, stop: () => { stopped = true; } };
}

function draw(solve, head, root, whatIf) {
  const { cluster, statistics } = solve;
  head.replaceChildren(
    el("div", { class: "crumb" }, link("#/solves", "Solves")),
    el("div", { class: "head" }, el("h1", { class: "mono" }, solve.id.slice(0, 12)), phaseBadge(solve.status),
      el("span", { class: "muted grow" }, `${solve.at.slice(0, 19).replace("T", " ")} · ${solve.milliseconds} ms · ${statistics.engine ?? "not answered"}`)),
    el("p", {}, `${count(solve.batch.length, "gang")} for ${count(cluster.devices, "device")} in ${count(cluster.pools, "pool")} on ${count(cluster.nodes, "node")}; ${cluster.held} held.`));
  root.replaceChildren(
    el("div", { class: "two" }, el("div", {}, batchSection(solve)), el("div", {}, objectiveSection(solve.objective), replaySection(solve))),
    whatIfSection(solve, whatIf));
}

function batchSection(solve) {
  const columns = ["Gang", "Priority", "Requests", "Answer"];
  const rows = solve.batch.map((gang) => {
    const known = [...store.gangs.values()].find((row) => row.uid === gang.uid);
    const asks = gang.members.map((member) => `${member.count} of ${member.name}: ${member.asks.join(", ") || "no devices"}`);
    return el("tr", {}, ...cells(columns, [known ? gangLink(known.id, gang.name) : gang.name, gang.priority, el("div", {}, asks.map((text) => el("div", {}, text))), answer(gang)]));
  });
  return section("Batch and answer", table(columns, rows, { class: "cards" }));
}

function answer(gang) {
  if (!gang.answer) return "open";
  if (gang.answer.verdict !== "allocated") return el("div", {}, noDevices(), gang.answer.reasons.map((reason) => el("div", { class: "muted" }, reason)));
  const places = Object.entries(gang.places);
  const shown = places.slice(0, MOST_PLACES).map(([node, pods]) => el("div", {}, nodeLink(node), ` ${count(pods, "pod")}`));
  const hidden = places.length - shown.length;
  return el("div", {}, phaseBadge("allocated"), shown, hidden > 0 ? el("div", { class: "muted" }, `and ${count(hidden, "more node")}`) : null);
}

const objectiveSection = (tiers) => section("Objective", tiers.length ? objectiveTable(tiers) : el("p", { class: "muted" }, "Not answered yet."));

function replaySection(solve) {
  const said = el("div", { role: "status" });
  const button = el("button", {
    type: "button", id: "replay",
    onclick: async () => {
      button.disabled = true;
      said.replaceChildren(el("p", { class: "muted" }, "Solving again…"));
      try {
        const result = await ask(`/api/solves/${encodeURIComponent(solve.id)}/replay`, { method: "POST" });
        said.replaceChildren(...drawReplay(result));
      } catch (error) {
        said.replaceChildren(el("p", { class: "no" }, error.message));
      }
      button.disabled = false;
    },
  }, "Replay");
  return section("Replay", el("p", { class: "muted" }, `Solves the recorded batch again and compares bytes. Recorded by ${solve.version} on ${solve.platform}.`), button, said);
}

function drawReplay(result) {
  const verdict = { true: "Same bytes", false: "Different bytes", null: "No answer was recorded to compare with" }[String(result.sameBytes)];
  return [
    el("p", { class: `verdict ${result.sameBytes ? "ok" : "no"}` }, `${result.sameBytes ? "✓ " : ""}${verdict}`),
    el("p", { class: "muted mono" }, `recorded ${result.recordedDecision.slice(0, 24)}…`), el("p", { class: "muted mono" }, `replayed ${result.replayedDecision.slice(0, 24)}…`),
    result.sameVersions ? null : el("p", {}, "Solved with other versions: bytes may differ, objectives may not."),
    ...(result.differences ?? []).map((line) => el("p", {}, line)),
  ].filter(Boolean);
}

// Recorded solves: their list, and one with its batch, its answer, replay and what-if.

import { noDevices, objectiveTable } from "./answers.js";
import { ask } from "./bus.js";
import { ageOf, badge, cells, clockOf, count, el, gangLink, link, nodeLink, section, solveLink, table } from "./dom.js";
import { fullName, store } from "./store.js";
import { whatIfSection } from "./whatif.js";

const COLUMNS = ["Solve", "Gangs", "Age", "At", "Status", "Allocated", "Waiting", "Rejected", "Time"];
const FILTERS = {
  all: ["All", () => true],
  waiting: ["With waiting gangs", (solve) => solve.pending > 0],
  rejected: ["With rejected gangs", (solve) => solve.rejected > 0],
  unproven: ["Not optimal", (solve) => solve.status !== "Optimal"],
};
const PAGE = 200;
const MOST_NAMES = 2;
const MOST_PLACES = 6;

let kept = { filter: "all", gang: "" };

export function solvesView() {
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Which solves" });
  const wanted = el("input", { type: "search", class: "narrow", placeholder: "Gang or namespace", "aria-label": "Only solves of gangs with this in their names", value: kept.gang, oninput: () => { kept.gang = wanted.value; shown = PAGE; draw(); } });
  const list = el("div", {});
  let shown = PAGE;
  const draw = () => {
    const names = new Map([...store.gangs.values()].map((gang) => [gang.uid, gang]));
    const ofGang = [...store.solves.values()].filter((solve) => !kept.gang || solve.uids.some((uid) => names.has(uid) && fullName(names.get(uid)).includes(kept.gang)));
    chips.replaceChildren(...Object.entries(FILTERS).map(([name, [text, passes]]) => el("button", {
      type: "button", class: "quiet", "aria-pressed": String(name === kept.filter),
      onclick: () => { kept.filter = name; shown = PAGE; draw(); },
    }, `${text} `, el("span", { class: "muted num" }, ofGang.filter(passes).length))));
    const solves = ofGang.filter(FILTERS[kept.filter][1]).sort((a, b) => (a.at < b.at ? 1 : -1));
    const rows = solves.slice(0, shown).map((solve) => el("tr", { class: "row" }, ...cells(COLUMNS, [
      solveLink(solve.id), nameGangs(solve.uids, names), ageOf(solve.at), clockOf(solve.at), badge(solve.status), solve.allocated, solve.pending, solve.rejected, `${solve.milliseconds} ms`,
    ])));
    list.replaceChildren(rows.length ? table(COLUMNS, rows, { class: "lines solves" }) : el("p", { class: "muted" }, store.solves.size ? "No such solves." : "No solves yet."));
    if (solves.length > shown) {
      list.append(el("button", { type: "button", class: "quiet", onclick: () => { shown += PAGE; draw(); } }, `Show more of ${solves.length}`));
    }
  };
  return {
    title: "Solves",
    elements: [el("section", {}, el("div", { class: "head" }, el("h1", { class: "grow" }, "Recorded solves"), wanted, chips),
      el("p", { class: "muted" }, "Each is recorded with its whole input: it can be solved again to the same bytes, or with something changed."), list)],
    start: draw,
    update: (update) => { if (update.solves || update.gangs || update.whole) draw(); },
  };
}

// The first gangs of a batch by name, and how many more there are.
function nameGangs(uids, names) {
  const known = uids.filter((uid) => names.has(uid)).slice(0, MOST_NAMES).map((uid) => names.get(uid));
  const hidden = uids.length - known.length;
  const more = hidden > 0 ? el("span", { class: "muted" }, known.length ? ` and ${hidden} more` : count(hidden, "gang")) : null;
  return el("span", {}, known.flatMap((gang, index) => [index ? ", " : "", gangLink(gang.id, fullName(gang))]), more);
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
    el("div", { class: "head" }, el("h1", { class: "mono" }, solve.id.slice(0, 12)), badge(solve.status),
      el("span", { class: "muted grow" }, clockOf(solve.at), ` · ${solve.milliseconds} ms · ${statistics.engine ?? "not answered"}`)),
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
  return el("div", {}, badge("allocated"), shown, hidden > 0 ? el("div", { class: "muted" }, `and ${count(hidden, "more node")}`) : null);
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

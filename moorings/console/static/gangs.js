// The gangs: why they wait, grouped by reason, and a row for each.

import { ask } from "./bus.js";
import { ageOf, badge, cells, el, gangLink, phaseBadge, section, table } from "./dom.js";
import { OVER, WAITS, fullName, store, waiting } from "./store.js";

const COLUMNS = ["Gang", "Phase", "Age", "Pods", "Nodes", "Priority", "Why"];
const FILTERS = {
  living: ["Active", (gang) => !OVER.has(gang.phase)],
  waiting: ["Waiting", (gang) => WAITS.has(gang.phase)],
  placed: ["With devices", (gang) => !OVER.has(gang.phase) && !WAITS.has(gang.phase)],
  over: ["Finished", (gang) => OVER.has(gang.phase)],
};
const ORDER = ["Rejected", "Waiting", "Pending", "Decided", "Allocated", "Running", "Completed", "Cancelled"];
const PAGE = 200;
const EXAMPLE = `apiVersion: moorings.dev/v1alpha1
kind: Gang
metadata: {name: train, namespace: default}
spec:
  members:
  - name: worker
    count: 2
    claims:
    - name: gpus
      spec:
        devices:
          requests:
          - name: gpu
            exactly: {deviceClassName: gpu.moorings.dev, count: 4}
`;
let filter = "living";

export function gangsView() {
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Which gangs" });
  const reasons = el("div", {});
  const list = el("div", {});
  let shown = PAGE;
  const draw = () => {
    chips.replaceChildren(...Object.entries(FILTERS).map(([name, [text, passes]]) => el("button", {
      type: "button", class: "quiet", "aria-pressed": String(name === filter),
      onclick: () => { filter = name; shown = PAGE; draw(); },
    }, `${text} `, el("span", { class: "muted num" }, [...store.gangs.values()].filter(passes).length))));
    reasons.replaceChildren(...drawReasons());
    const gangs = [...store.gangs.values()].filter(FILTERS[filter][1]).sort(byUrgency);
    list.replaceChildren(gangs.length ? drawTable(gangs.slice(0, shown)) : el("p", { class: "muted" }, "No gangs."));
    if (gangs.length > shown) {
      list.append(el("button", { type: "button", class: "quiet", onclick: () => { shown += PAGE; draw(); } }, `Show more of ${gangs.length}`));
    }
  };
  return {
    title: "Gangs",
    elements: [reasons, el("section", {}, el("div", { class: "head" }, el("h1", { class: "grow" }, "Gangs"), chips), list), ...drawSubmit()],
    start: draw,
    update: (update) => { if (update.gangs || update.whole) draw(); },
  };
}

const byUrgency = (a, b) => ORDER.indexOf(a.phase) - ORDER.indexOf(b.phase) || b.priority - a.priority || (a.since < b.since ? -1 : 1);

// Gangs that wait for the same reason share a line: the rule, how many, the longest waiting.
function drawReasons() {
  const groups = new Map();
  for (const gang of waiting()) {
    const rule = /^\w+/.exec(gang.reason)?.[0] ?? "Undecided";
    if (!groups.has(rule)) groups.set(rule, []);
    groups.get(rule).push(gang);
  }
  if (!groups.size) return [];
  const lines = [...groups].sort((a, b) => b[1].length - a[1].length).map(([rule, gangs]) => {
    const oldest = gangs.reduce((a, b) => (a.since <= b.since ? a : b));
    const row = el("tr", {}, ...cells(["Rule", "Gangs", "For example"], [
      badge("pending", rule), gangs.length,
      el("span", {}, gangLink(oldest.id, fullName(oldest)), el("span", { class: "muted" }, ` ${oldest.reason.slice(rule.length).replace(/^:\s*/, "")}`)),
    ]));
    row.lastChild.className = "reason";
    return row;
  });
  return [section("Why gangs wait", table(["Rule", "Gangs", "For example"], lines, { class: "cards" }))];
}

function drawTable(gangs) {
  const rows = gangs.map((gang) => {
    const values = [
      gangLink(gang.id, fullName(gang)), phaseBadge(gang.phase), ageOf(gang.since),
      gang.pods, gang.nodes || "", gang.priority, el("span", { title: gang.reason }, gang.reason),
    ];
    const row = el("tr", { class: "row" }, ...cells(COLUMNS, values));
    row.lastChild.className = "reason";
    return row;
  });
  return table(COLUMNS, rows, { class: "lines gangs" });
}

function drawSubmit() {
  if (store.right !== "change") return [];
  const text = el("textarea", { class: "mono", "aria-label": "Manifest", value: EXAMPLE, spellcheck: false });
  const said = el("p", { role: "status" });
  const send = el("button", {
    type: "button",
    onclick: async () => {
      try {
        const { uids } = await ask("/api/change/submit", { method: "POST", body: text.value });
        said.replaceChildren("Submitted: ", ...uids.map((uid) => el("code", {}, `${uid} `)));
      } catch (error) {
        said.replaceChildren(el("span", { class: "no" }, error.message));
      }
    },
  }, "Submit");
  return [el("section", {}, el("details", {}, el("summary", {}, "Submit a gang"), el("div", { class: "form" }, text, el("div", {}, send), said)))];
}

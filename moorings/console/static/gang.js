// One gang: why it waits, what would help, what happened when, and where its pods are.

import { ask } from "./bus.js";
import { ageOf, cells, clockOf, count, el, gangLink, link, nodeLink, phaseBadge, section, solveLink, table } from "./dom.js";
import { OVER, fullName, gangNamed, store } from "./store.js";

const EVENTS = {
  SubmitGang: ["Submitted", ""], CancelGang: ["Cancelled", "bad"], ReleaseGang: ["Released", ""],
  GangAllocated: ["Decided: it has its devices", "good"], GangPending: ["Decided: it waits", "wait"],
  GangRejected: ["Rejected", "bad"], GangReleased: ["Its devices are free again", ""],
  AllocationWritten: ["Claims allocated", "good"], GatesOpened: ["Gates opened: its pods may run", "good"],
  AllocationRefused: ["The decision could not be written", "bad"], AllocationLost: ["The allocation was lost", "bad"],
  ClaimsReleased: ["Claims released", ""],
};
const MOST_PLACES = 100;
const MOST_HOLDERS = 10;
// The counts behind a reason, in the order in which the rules are checked.
const FACTS = {
  devices: "devices", selected: "match the request", onSelectedNodes: "on nodes that the pod selects", onCapableNodes: "on nodes with the features that it needs", onUsableNodes: "on usable nodes",
  onToleratedNodes: "on nodes with tolerated taints", besideOtherPods: "where rules between pods allow it", supported: "supported by the enabled features",
  free: "free", eligible: "free and not tainted", pods: "pods needed", room: "pods with room",
};

export function gangView(id) {
  const root = el("div", { class: "two" });
  const head = el("div", { class: "card" });
  let [stopped, asked] = [false, 0];
  const help = helpPanel();
  const load = async () => {
    asked += 1;
    const mine = asked;
    try {
      const story = await ask(`/api/gangs/${encodeURIComponent(id)}`);
      if (!stopped && mine === asked) draw(story, head, root, help);
    } catch (error) {
      if (!stopped && mine === asked) head.replaceChildren(el("h1", {}, "Gang"), el("p", { class: "no" }, error.message));
    }
  };
  return {
    title: "Gang",
    elements: [head, root],
    start: load,
    update: (update) => { if (update.whole || id in (update.gangs ?? {})) load(); },
    stop: () => { stopped = true; },
  };
}

function draw(story, head, root, help) {
  const [explanation] = story.explanations;
  const reasons = story.explanations.flatMap((each) => each.reasons);
  const facts = [
    el("span", {}, "submitted ", ageOf(story.since), " ago"), count(story.pods, "pod"), story.nodes ? `on ${count(story.nodes, "node")}` : "",
    `priority ${story.priority}`, explanation?.attempt ? `attempt ${explanation.attempt}` : "",
  ].filter(Boolean).flatMap((part, index) => (index ? [" · ", part] : [part]));
  head.replaceChildren(
    el("div", { class: "crumb" }, link("#/gangs", "Gangs"), ` / ${story.namespace}`),
    el("div", { class: "head" }, el("h1", {}, story.name), phaseBadge(story.phase), el("span", { class: "grow muted" }, ...facts), ...actions(story)),
    ...story.asks.flat().map((text) => el("p", {}, `Requests ${text}`)));
  const left = [];
  const reports = story.explanations.flatMap((each) => each.reports);
  const waits = !OVER.has(story.phase) && (reasons.length > 0 || reports.length > 0 || story.phase === "Pending");
  if (waits || reasons.length) left.push(whySection(story, reasons, reports));
  const line = story.explanations.filter((each) => each.place);
  if (line.length) left.push(lineSection(line));
  if (waits && story.uid) left.push(help.element(story));
  const ends = story.explanations.filter((each) => each.endsBy);
  if (ends.length) left.push(endSection(ends));
  const members = story.explanations.flatMap((each) => each.members);
  if (members.length) left.push(placesSection(members));
  if (!left.length) left.push(section("Finished", el("p", { class: "muted" }, "The gang is finished and holds no devices.")));
  root.replaceChildren(el("div", {}, ...left), el("div", {}, timelineSection(story)));
}

function whySection(story, reasons, reports) {
  const cards = reasons.map((reason) => el("div", { class: story.phase === "Rejected" ? "why bad" : "why" },
    el("div", { class: "rule" }, reason.rule, reason.subject ? el("span", { class: "muted" }, ` · ${reason.subject}`) : null, reason.field ? el("code", {}, ` ${reason.field}`) : null),
    el("p", {}, reason.message), factBars(reason.facts)));
  const told = reports.map((report) => el("div", { class: "why" }, el("div", { class: "rule" }, report.reason), el("p", {}, report.message),
    report.names.length ? el("p", { class: "muted" }, `Pods: ${report.names.join(", ")}`) : null));
  const none = !cards.length && !told.length ? [el("p", {}, story.reason || "It is waiting for a decision.")] : [];
  return section(story.phase === "Rejected" ? "Why it was rejected" : "Why it waits", ...cards, ...told, ...none);
}

function endSection(explanations) {
  return section("Its end", ...explanations.map(({ endsBy, duration }) => el("p", {}, "By ", clockOf(endsBy), " at the latest",
    el("span", { class: "muted" }, `: its duration is ${duration}`))));
}

// Its place in line, and who holds what it could have.
function lineSection(explanations) {
  const places = explanations.map(({ place }) => el("p", {}, `Place ${place.place} of ${place.waiting}`, place.queue ? ` in ClusterQueue ${place.queue}` : "",
    el("span", { class: "muted" }, place.higherPriority ? `: ${place.higherPriority} of higher priority` : "")));
  const starts = explanations.flatMap(({ expectedStart }) => expectedStart ? [el("p", {},
    ...(expectedStart.time ? ["Starts by ", clockOf(expectedStart.time), " at the latest"] : ["Starts in its turn"]),
    el("span", { class: "muted" }, ` (${expectedStart.proven ? "proven" : "perhaps earlier"}): ${expectedStart.because}`))] : []);
  const lacks = explanations.flatMap((each) => each.lacks).map((lacking) => el("p", {}, `Lacks ${lacking}`));
  const devices = explanations.flatMap(({ contested }) => contested).map(({ driver, states, holders }) => {
    const counts = Object.entries(states).filter(([, number]) => number).map(([state, number]) => `${number} ${state.toLowerCase()}`);
    const held = holders.slice(0, MOST_HOLDERS).flatMap((holder, index) => {
      const gang = gangNamed(holder.gang);
      return [index ? ", " : "", gang ? gangLink(gang.id, holder.gang) : holder.gang || "no gang", ` (${count(holder.devices, "device")}, priority ${holder.priority})`];
    });
    const hidden = holders.length - MOST_HOLDERS;
    return el("div", {}, el("p", {}, el("b", {}, driver), `: ${counts.join(", ")}`),
      held.length ? el("p", { class: "muted" }, "held by ", held, hidden > 0 ? ` and ${hidden} more` : "") : null);
  });
  return section("Its place in line", ...places, ...starts, ...lacks, ...devices);
}

// The counts behind a reason, as bars of one scale; rules that left out nothing are left out.
function factBars(facts) {
  const place = (name) => { const at = Object.keys(FACTS).indexOf(name); return at < 0 ? Infinity : at; };
  const all = Object.entries(facts).sort(([a], [b]) => (place(a) - place(b)) || 0);
  const entries = all.filter(([name, number], index) => index === 0 || name.startsWith("pods") || !(name in FACTS) || number !== all[index - 1][1]);
  if (!entries.length) return null;
  const most = Math.max(1, ...entries.map(([, number]) => number));
  return el("div", { class: "facts" }, entries.flatMap(([name, number]) => [
    el("span", { class: "muted" }, FACTS[name] ?? name), el("div", { class: "bar" }, el("i", { style: { width: `${(100 * number) / most}%` } })), el("span", { class: "num" }, number.toLocaleString("en")),
  ]));
}

// What would help stays on the page while the story around it changes.
function helpPanel() {
  const said = el("div", {});
  const button = el("button", { type: "button", id: "find-help" }, "Find out what would help");
  let element = null;
  return {
    element(story) {
      button.onclick = () => findHelp(story, button, said);
      element ??= section("What would help", el("p", { class: "muted" },
        "Solves its last recorded batch again, and asks the cluster as it is, to find the smallest change of each kind. Nothing is changed in the cluster."), button, said);
      return element;
    },
  };
}

async function findHelp(story, button, said) {
  button.disabled = true;
  said.replaceChildren(el("p", { class: "muted", role: "status" }, "Solving…"));
  try {
    const help = await ask(`/api/help/${encodeURIComponent(story.namespace)}/${encodeURIComponent(story.uid)}`, { method: "POST" });
    const line = (each) => el("li", { class: each.helps ? "yes" : "" },
      el("span", { class: "mark" }, each.helps ? "✓" : "✗"), el("span", {}, ...changeText(each)),
      each.whatIf ? link(`#/solve/${encodeURIComponent(help.solve)}/${encodeURIComponent(JSON.stringify(each.whatIf))}`, "try it") : null,
      each.helps ? null : el("small", {}, each.reasons[0] ?? ""));
    const enough = help.tried.filter((each) => each.helps);
    const others = help.tried.filter((each) => !each.helps);
    said.replaceChildren(
      el("p", {}, enough.length ? "It would get its devices if:" : "None of the changes tried would be enough."),
      el("ul", { class: "tries" }, enough.map(line)),
      others.length ? el("details", { open: !enough.length }, el("summary", {}, `${count(others.length, "other change")} would not be enough`), el("ul", { class: "tries" }, others.map(line))) : "",
      el("p", { class: "muted" }, "As of solve ", solveLink(help.solve), " at ", clockOf(help.at), "."));
  } catch (error) {
    said.replaceChildren(el("p", { class: "no" }, error.message));
  }
  button.disabled = false;
}

// A change in words, times on the clock of who reads.
function changeText(change) {
  return change.startsAt ? ["it waits until ", clockOf(change.startsAt), change.proven ? ", proven" : ", perhaps less"] : [change.text];
}

function placesSection(members) {
  const columns = ["Member", "Node", "Pods", "Devices"];
  const rows = members.slice(0, MOST_PLACES).map((member) => el("tr", {}, ...cells(columns, [
    `${member.member}/${member.index}`, nodeLink(member.node), [...member.pods, ...member.gone.map((pod) => `${pod} (gone)`)].join(", ") || "—",
    el("span", { class: "mono" }, member.claims.filter((claim) => claim.held).map((claim) => `${claim.devices.map((device) => device.split("/").pop()).join(", ")}${claim.name ? ` of ${claim.name}` : ""}`).join("; ") || "none"),
  ])));
  const hidden = members.length - rows.length;
  return section("Where it is", table(columns, rows, { class: "cards" }), hidden > 0 ? el("p", { class: "muted" }, `and ${hidden} more`) : null);
}

function timelineSection(story) {
  let before = null;
  const items = story.events.map((event) => {
    const [text, kind] = EVENTS[event.what] ?? [event.what, ""];
    const at = Date.parse(event.at);
    const gap = before === null ? "" : ` · ${lasted(at - before)} later`;
    before = at;
    return el("li", { class: kind, "data-event": event.what }, el("div", {}, el("b", {}, text), event.attempt ? el("span", { class: "muted" }, ` attempt ${event.attempt}`) : null),
      el("div", { class: "when" }, clockOf(event.at, true), gap, event.solve ? [" · ", solveLink(event.solve)] : null),
      ...(event.reasons.length ? event.reasons : [event.detail]).filter(Boolean).map((line) => el("div", {}, line)));
  });
  return section("Timeline", items.length ? el("ol", { class: "timeline" }, items) : el("p", { class: "muted" }, "It has not been submitted yet."));
}

function lasted(ms) {
  if (ms < 1000) return `${ms} ms`;
  return ms < 120000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60000)} min`;
}

function actions(story) {
  if (store.right !== "change" || OVER.has(story.phase) || !story.uid) return [];
  return [["release", "Release", "its work is done"], ["cancel", "Cancel", "it is no longer wanted"]].map(([verb, text, means]) => el("button", {
    type: "button", class: "danger",
    onclick: async (event) => {
      if (!confirm(`${text} gang ${fullName(story)}: ${means}. Its devices become free.`)) return;
      event.target.disabled = true;
      try {
        await ask(`/api/change/${verb}/${encodeURIComponent(story.namespace)}/${encodeURIComponent(story.uid)}`, { method: "POST" });
      } catch (error) {
        event.target.after(el("span", { class: "no" }, error.message));
      }
    },
  }, text));
}

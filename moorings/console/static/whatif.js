// What-if: the form, and what the change would make different.

import { noDevices, objectiveTable } from "./answers.js";
import { ask } from "./bus.js";
import { colorOf } from "./colors.js";
import { badge, cells, count, el, nodeLink, section, table } from "./dom.js";
import { store } from "./store.js";

const MOST_NODES = 40;

export function whatIfSection(solve, given) {
  const said = el("div", { role: "status" });
  const form = el("form", { class: "form" });
  const parts = [gangFields(solve, given), termFields(given), clusterFields(solve, given), holderFields(given)];
  const button = el("button", { type: "submit", id: "ask" }, "What if?");
  form.append(...parts.map((part) => part.element), el("div", {}, button));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.replaceChildren(el("p", { class: "muted" }, "Solving…"));
    const whatIf = Object.assign({}, ...parts.map((part) => part.read()));
    try {
      const body = JSON.stringify(whatIf);
      said.replaceChildren(...drawDifference(await ask(`/api/solves/${encodeURIComponent(solve.id)}/what-if`, { method: "POST", body })));
    } catch (error) {
      said.replaceChildren(el("p", { class: "no" }, error.message));
    }
    button.disabled = false;
  });
  const element = section("What if", el("p", { class: "muted" }, "Change something and solve again. Nothing is changed in the cluster."), form, said);
  if (given) queueMicrotask(() => { form.requestSubmit(); element.scrollIntoView({ block: "start" }); });
  return element;
}

// For each gang of the batch: leave it out, its priority, its pods.
function gangFields(solve, given) {
  const rows = solve.batch.map((gang) => ({
    gang,
    out: el("input", { type: "checkbox", checked: given?.leaveOut?.includes(gang.uid) ?? false, "aria-label": `Leave out ${gang.name}` }),
    priority: el("input", { type: "number", value: given?.priorities?.[gang.uid] ?? gang.priority, "aria-label": `Priority of ${gang.name}` }),
    pods: gang.members.map((member) => el("input", { type: "number", min: 1, max: 5000, value: given?.pods?.[`${gang.uid}/${member.name}`] ?? member.count, "aria-label": `Pods of ${gang.name} ${member.name}` })),
  }));
  const columns = ["Gang", "Leave out", "Priority", "Pods"];
  const lines = rows.map(({ gang, out, priority, pods }) => el("tr", {}, ...cells(columns, [
    gang.name, out, priority, el("div", { class: "fields" }, pods.map((input, index) => el("label", {}, gang.members[index].name, input))),
  ])));
  const read = () => ({
    leaveOut: rows.filter((row) => row.out.checked).map((row) => row.gang.uid),
    priorities: Object.fromEntries(rows.filter((row) => Number(row.priority.value) !== row.gang.priority).map((row) => [row.gang.uid, Number(row.priority.value)])),
    pods: Object.fromEntries(rows.flatMap(({ gang, pods, out }) => (out.checked ? [] : gang.members.map((member, index) => [`${gang.uid}/${member.name}`, Number(pods[index].value), member.count])))
      .filter(([, now, before]) => now !== before).map(([key, now]) => [key, now])),
  });
  return { element: el("fieldset", {}, el("legend", {}, "Gangs of the batch"), table(columns, lines, { class: "cards" })), read };
}

// Terms of gangs that are left out, as they were proposed.
function termFields(given) {
  const boxes = (given?.without ?? []).map((path) => ({ path, box: el("input", { type: "checkbox", checked: true }) }));
  const lines = boxes.map(({ path, box }) => el("label", { class: "choice" }, box, path));
  const element = boxes.length ? el("fieldset", {}, el("legend", {}, "Terms that gangs do without"), el("div", { class: "list" }, lines)) : "";
  return { element, read: () => ({ without: boxes.filter(({ box }) => box.checked).map(({ path }) => path) }) };
}

function clusterFields(solve, given) {
  const heal = el("input", { type: "checkbox", checked: given?.heal ?? false });
  const number = el("input", { type: "number", min: 0, max: 256, value: given?.addNodes ?? 0, id: "add-nodes" });
  const like = el("select", { id: "like" }, solve.nodes.map((name) => el("option", { value: name }, name)));
  if (given?.like) like.value = given.like;
  const read = () => ({ heal: heal.checked, ...(Number(number.value) ? { addNodes: Number(number.value), like: like.value } : {}) });
  const element = el("fieldset", {}, el("legend", {}, "The cluster"),
    el("label", { class: "choice" }, heal, "all devices healthy and all nodes ready"),
    el("div", { class: "fields" }, el("label", {}, "more nodes", number), el("label", {}, "like this one, with all devices free", like)));
  return { element, read };
}

// Gangs that hold devices now and could end.
function holderFields(given) {
  const held = new Map();
  for (const node of store.nodes.values()) {
    for (const [gang, devices] of Object.entries(node.gangs)) if (gang) held.set(gang, (held.get(gang) ?? 0) + devices.length);
  }
  const boxes = [...held].sort((a, b) => b[1] - a[1]).map(([gang, devices]) => ({
    gang, devices, box: el("input", { type: "checkbox", checked: given?.end?.includes(gang) ?? false }),
  }));
  const lines = boxes.map(({ gang, devices, box }) => el("label", { class: "choice" }, box, gang, el("span", { class: "muted" }, count(devices, "device"))));
  const element = el("fieldset", {}, el("legend", {}, "Gangs that hold devices now and would end"),
    el("div", { class: "list" }, lines.length ? lines : el("p", { class: "muted" }, "None.")));
  return { element, read: () => ({ end: boxes.filter(({ box }) => box.checked).map(({ gang }) => gang) }) };
}

function drawDifference(result) {
  const changed = result.gangs.filter(({ before, after }) => before?.verdict !== after?.verdict);
  const words = changed.length
    ? changed.map(({ name, after }) => `${name} ${after === null ? "left out" : after.verdict === "allocated" ? "gets its devices" : "does not get its devices"}`).join("; ")
    : "The same gangs get devices.";
  return [
    el("p", { class: `verdict ${changed.some(({ after }) => after?.verdict === "allocated") ? "ok" : ""}`, id: "what-if-verdict" }, words),
    el("div", { class: "two" },
      el("div", {}, el("h3", {}, "By gang"), gangTable(result.gangs), el("h3", {}, "Objective now"), objectiveTable(result.objective.after)),
      el("div", {}, el("h3", {}, "Pods by node"), nodeBars(result))),
  ];
}

function gangTable(gangs) {
  const columns = ["Gang", "Recorded", "Now"];
  const text = (answer) => (answer === null ? el("span", { class: "badge phase-out" }, "left out") : el("div", {}, answer.verdict === "allocated" ? badge("allocated") : noDevices(),
    el("div", { class: "muted" }, answer.verdict === "allocated" ? `${count(answer.pods, "pod")} on ${count(answer.nodes, "node")}` : answer.reasons[0] ?? "")));
  return table(columns, gangs.map(({ name, before, after }) => el("tr", {}, ...cells(columns, [
    el("span", {}, el("span", { class: "swatch", style: { background: colorOf(name) } }), name), text(before), text(after),
  ]))), { class: "cards" });
}

// Each node twice: what was recorded, and what it would be; a pod is as wide on both sides.
function nodeBars({ nodes }) {
  const differs = ({ before, after }) => JSON.stringify(before) !== JSON.stringify(after);
  const sorted = [...nodes].sort((a, b) => Number(differs(b)) - Number(differs(a)) || a.name.localeCompare(b.name, "en", { numeric: true }));
  const total = (pods) => Object.values(pods).reduce((sum, number) => sum + number, 0);
  const most = Math.max(1, ...nodes.flatMap(({ before, after }) => [total(before), total(after)]));
  const bar = (pods) => el("div", { class: "stack" }, Object.entries(pods).map(([gang, number]) => el("i", {
    title: `${gang}: ${count(number, "pod")}`, style: { width: `${(100 * number) / most}%`, background: colorOf(gang) },
  })));
  const lines = sorted.slice(0, MOST_NODES).flatMap((node) => [
    el("div", { class: "label" }, node.name.startsWith("what-if-") ? node.name : nodeLink(node.name), differs(node) ? " *" : ""), bar(node.before), bar(node.after),
  ]);
  const hidden = sorted.length - MOST_NODES;
  return el("div", {}, el("div", { class: "difference" }, el("b", { class: "label" }, "Node"), el("b", {}, "Recorded"), el("b", {}, "Now"), lines),
    hidden > 0 ? el("p", { class: "muted" }, `and ${count(hidden, "more node")}`) : null, nodes.length ? null : el("p", { class: "muted" }, "No pod is placed."));
}

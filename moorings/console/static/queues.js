// Kueue's ClusterQueues: what gangs hold of their quotas, who runs by them, and who waits.

import { ask } from "./bus.js";
import { ageOf, cells, el, table } from "./dom.js";

const COLUMNS = ["Queue", "Cohort", "Strategy", "Running", "Waiting", "Oldest", "Quota"];
const AGAIN_MS = 2000;

export function queuesView() {
  const list = el("div", {});
  let stopped = false;
  let timer = null;
  const load = async () => {
    try {
      const queues = await ask("/api/queues");
      if (!stopped) list.replaceChildren(queues.length ? table(COLUMNS, queues.map(row), { class: "lines queues" }) : el("p", { class: "muted" }, "No ClusterQueues: no quota limits anybody."));
    } catch (error) {
      if (!stopped) list.replaceChildren(el("p", { class: "no" }, error.message));
    }
  };
  return {
    title: "Queues",
    elements: [el("section", {}, el("div", { class: "head" }, el("h1", { class: "grow" }, "Queues")), list)],
    start: load,
    update(update) {
      // Many gangs may change at once: one look is for all of them.
      if (update.gangs || update.whole) timer ??= setTimeout(() => { timer = null; load(); }, AGAIN_MS);
    },
    stop() { stopped = true; clearTimeout(timer); },
  };
}

function row(queue) {
  return el("tr", { class: "row" }, ...cells(COLUMNS, [
    queue.name, queue.cohort, queue.strategy, queue.running, queue.waiting,
    queue.oldestSince ? ageOf(queue.oldestSince) : "",
    el("div", {}, queue.closed ? el("div", { class: "no" }, `Closed: ${queue.closed}`) : null,
      ...queue.unread.map((each) => el("div", { class: "no" }, each)), ...queue.quotas.map(quotaLine)),
  ]));
}

function quotaLine({ resource, flavor, used, nominal, borrowed, left }) {
  const more = [borrowed === "0" ? "" : `${borrowed} borrowed`, `${left} left`].filter(Boolean).join(", ");
  return el("div", {}, `${resource} ${used} of ${nominal}`, el("span", { class: "muted" }, ` of ${flavor}, ${more}`));
}

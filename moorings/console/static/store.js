// What the server has sent so far, and the listeners to changes.

export const store = { right: "none", about: {}, nodes: new Map(), gangs: new Map(), solves: new Map() };
const listeners = new Set();
const PARTS = ["nodes", "gangs", "solves"];

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function merge(update) {
  if (update.right) store.right = update.right;
  if (update.about) store.about = update.about;
  for (const part of PARTS) {
    if (update.whole) store[part].clear();
    for (const [name, value] of Object.entries(update[part] ?? {})) {
      if (value === null) store[part].delete(name);
      else store[part].set(name, value);
    }
  }
  for (const listener of listeners) listener(update);
}

export const OVER = new Set(["Completed", "Cancelled", "Rejected"]);
export const WAITS = new Set(["Pending", "Waiting"]);

export function waiting() {
  return [...store.gangs.values()].filter((gang) => WAITS.has(gang.phase));
}

export const fullName = (gang) => `${gang.namespace}/${gang.name}`;

// The gang of a name, as holders of devices are named; the last one lives.
export function gangNamed(name) {
  let found = null;
  for (const gang of store.gangs.values()) {
    if (fullName(gang) === name && (!found || OVER.has(found.phase))) found = gang;
  }
  return found;
}

// Where each node of the fleet is drawn: groups as boxes that flow, nodes as tiles in them.

const BOX = { pad: 6, title: 18, gap: 8 };

// Cells get smaller the more nodes there are, so that a large fleet is one picture.
function cellSize(nodes) {
  if (nodes <= 40) return 16;
  if (nodes <= 200) return 11;
  return nodes <= 600 ? 8 : 5;
}

export function groupKeys(nodes) {
  const values = new Map();
  for (const node of nodes) {
    for (const [key, value] of Object.entries(node.groups)) {
      if (!values.has(key)) values.set(key, new Set());
      values.get(key).add(value);
    }
  }
  // The finest first.
  return [...values].sort((a, b) => b[1].size - a[1].size).map(([key]) => key);
}

export function layOut(nodes, key, width) {
  const groups = new Map();
  for (const node of nodes) {
    const name = node.groups[key] ?? "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(node);
  }
  const most = Math.max(1, ...nodes.map((node) => node.states.length));
  const cell = cellSize(nodes.length);
  const columns = Math.min(8, most);
  const named = cell >= 11;
  const tile = {
    cell, columns, named, gap: cell > 6 ? 2 : 1, pad: cell > 6 ? 5 : 2,
  };
  tile.width = Math.max(columns * (cell + tile.gap) - tile.gap + 2 * tile.pad, named ? 92 : 0);
  tile.rows = Math.ceil(most / columns);
  tile.height = tile.rows * (cell + tile.gap) - tile.gap + 2 * tile.pad + (named ? 16 : 0);
  return { ...flow(groups, key, tile, width), tile };
}

function flow(groups, key, tile, width) {
  const boxes = [];
  const tiles = new Map();
  let [x, y, lineHeight] = [0, 0, 0];
  const names = [...groups.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  for (const name of names) {
    const members = groups.get(name).sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    const step = { x: tile.width + tile.gap + 1, y: tile.height + tile.gap + 1 };
    const fit = Math.max(1, Math.floor((width - 2 * BOX.pad) / step.x));
    const wish = Math.ceil(Math.sqrt((members.length * step.y * 1.6) / step.x));
    const columns = Math.max(1, Math.min(fit, members.length, names.length === 1 ? fit : wish));
    const box = {
      name, x, y,
      nodes: members.map((node) => node.name),
      width: columns * step.x + 2 * BOX.pad,
      height: Math.ceil(members.length / columns) * step.y + 2 * BOX.pad + BOX.title,
    };
    if (x > 0 && x + box.width > width) {
      [box.x, box.y] = [0, y + lineHeight + BOX.gap];
      lineHeight = 0;
    }
    members.forEach((node, index) => tiles.set(node.name, {
      node: node.name, group: node.groups[key],
      x: box.x + BOX.pad + (index % columns) * step.x,
      y: box.y + BOX.title + BOX.pad + Math.floor(index / columns) * step.y,
    }));
    boxes.push(box);
    [x, y, lineHeight] = [box.x + box.width + BOX.gap, box.y, Math.max(lineHeight, box.height)];
  }
  return { boxes, tiles, height: y + lineHeight };
}

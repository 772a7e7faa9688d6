// Groups of nodes.

// Groups nodes by pool and product. `found` are the numbers of the cards: a row for each pool, product and resource. The
// product of a resource other than the first one is followed by the resource; a label has no space.
export function grouped(nodes, found) {
  const rows = new Map();
  for (const row of found) {
    const [product, resource = ""] = row.product.split(" ");
    const key = `${row.pool}\n${product}`;
    rows.set(key, [...(rows.get(key) ?? []), { ...row, resource }]);
  }
  const groups = new Map();
  for (const node of nodes) {
    const key = `${node.pool}\n${node.product}`;
    if (!groups.has(key)) groups.set(key, { key, pool: node.pool, product: node.product, nodes: [], rows: rows.get(key) ?? [] });
    groups.get(key).nodes.push(node);
  }
  return [...groups.values()].sort((a, b) => Number(b.rows.length > 0) - Number(a.rows.length > 0) || (a.key < b.key ? -1 : 1));
}

// Groups nodes by their domain of the topology `by`, such as rack, and by product. Nodes without the label come last.
export function groupedByDomain(nodes, by) {
  const groups = new Map();
  for (const node of nodes) {
    const value = node.domains[by];
    const key = `${by}\n${JSON.stringify(value ?? null)}\n${node.product}`;
    if (!groups.has(key)) groups.set(key, { key, domain: value ?? null, pool: value ?? "", product: node.product, nodes: [] });
    groups.get(key).nodes.push(node);
  }
  for (const group of groups.values()) group.rows = rowsOf(group.nodes);
  const rank = (group) => [group.domain === null, !group.rows.length].map(Number).join("");
  return [...groups.values()].sort((a, b) => rank(a).localeCompare(rank(b)) || (a.key < b.key ? -1 : 1));
}

function rowsOf(nodes) {
  const cards = nodes.reduce((sum, node) => sum + node.cards.reduce((all, card) => all + card.count, 0), 0);
  const free = nodes.map(freeCards);
  return cards ? [{ resource: "", cards, free: free.reduce((sum, n) => sum + n, 0), largest: Math.max(...free) }] : [];
}

// A node that takes no pods has no free cards.
export function freeCards(node) {
  if (node.state || node.pods[0] >= node.pods[1]) return 0;
  return node.cards.reduce((sum, card) => sum + Math.max(0, card.count - card.used.reduce((all, used) => all + used[2], 0)), 0);
}

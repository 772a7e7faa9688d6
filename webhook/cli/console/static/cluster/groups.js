// Groups of nodes.

// Groups nodes by pool and product. `found` has the numbers of each group that has cards.
export function grouped(nodes, found) {
  const numbers = new Map(found.map((group) => [`${group.pool}\n${group.product}`, group]));
  const groups = new Map();
  for (const node of nodes) {
    const key = `${node.pool}\n${node.product}`;
    if (!groups.has(key)) groups.set(key, { ...numbers.get(key), key, pool: node.pool, product: node.product, nodes: [] });
    groups.get(key).nodes.push(node);
  }
  return [...groups.values()].sort((a, b) => Number(Boolean(b.cards)) - Number(Boolean(a.cards)) || (a.key < b.key ? -1 : 1));
}

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

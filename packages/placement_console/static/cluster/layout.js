// Sizes and places of node boxes: pure functions, without a canvas.

// By density: the edge of a card, the gaps, the height of a bar, and the place for the name of the node.
const SIZES = {
  small: { cell: 7, gap: 1, pad: 2, bar: 3, head: 0, space: 4, least: 0 },
  medium: { cell: 13, gap: 2, pad: 4, bar: 3, head: 0, space: 6, least: 0 },
  large: { cell: 22, gap: 3, pad: 8, bar: 5, head: 22, space: 10, least: 148 },
};

export const DENSITIES = ["small", "medium", "large"];

// The density by which a whole cluster is seen at once, as far as possible.
export function densityFor(nodes) {
  return nodes <= 60 ? "large" : nodes <= 600 ? "medium" : "small";
}

export function cardCount(node) {
  return node.cards.reduce((sum, card) => sum + Math.min(card.count, 64), 0);
}

// The grid of `nodes` on `width` pixels: size of a box, columns, rows.
export function gridOf(nodes, width, density) {
  const size = SIZES[density];
  const cells = Math.max(1, ...nodes.map(cardCount));
  const across = cells <= 4 ? cells : cells <= 8 ? 4 : cells <= 16 ? 8 : 12;
  const down = Math.ceil(cells / across);
  const inner = Math.max(size.least, across * (size.cell + size.gap) - size.gap, 16);
  const boxWidth = inner + 2 * size.pad;
  const boxHeight = 2 * size.pad + size.head + down * (size.cell + size.gap) + 2 * (size.bar + 1);
  const columns = Math.max(1, Math.floor((width + size.space) / (boxWidth + size.space)));
  const rows = Math.ceil(nodes.length / columns);
  return { ...size, across, boxWidth, boxHeight, columns, rows, stepX: boxWidth + size.space, stepY: boxHeight + size.space, height: Math.max(0, rows * (boxHeight + size.space) - size.space) };
}

export function placeOf(grid, index) {
  return { x: (index % grid.columns) * grid.stepX, y: Math.floor(index / grid.columns) * grid.stepY };
}

// The index of the node at a point, or -1 between the boxes.
export function indexAt(grid, count, x, y) {
  const column = Math.floor(x / grid.stepX);
  const row = Math.floor(y / grid.stepY);
  const isInside = x >= 0 && y >= 0 && column < grid.columns && x - column * grid.stepX <= grid.boxWidth && y - row * grid.stepY <= grid.boxHeight;
  const index = row * grid.columns + column;
  return isInside && index < count ? index : -1;
}

// The indices of the nodes whose boxes are between two heights.
export function visibleRange(grid, count, top, bottom) {
  const first = Math.max(0, Math.floor(top / grid.stepY)) * grid.columns;
  const last = Math.min(count, (Math.floor(bottom / grid.stepY) + 1) * grid.columns);
  return [Math.min(first, count), Math.max(last, 0)];
}

// Draws the box of one node on a canvas.
import { colourOf, inkOn, letterOf } from "./colours.js";

// Colours of the page, read once for a drawing.
export function inksOf(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    box: read("--box"), line: read("--line-strong"), free: read("--free"), text: read("--text"), quiet: read("--quiet"),
    cpu: read("--cpu"), memory: read("--memory"), track: read("--track"), bad: read("--bad"), accent: read("--accent"),
    mark: read("--mark"), font: style.fontFamily,
  };
}

// Pixels: the edge of a cell that a font does not fit into is smaller, and a bar is no shorter.
const SMALL = 12;
const LEAST_BAR = 3;
// Letters of three by five pixels, for cells that are too small for a font: the bits of the rows from the top. They are drawn
// once for each letter and colour.
const PIXELS = { A: 0x2bed, B: 0x6bae, C: 0x3923, D: 0x6b6e, E: 0x79a7, F: 0x79a4, G: 0x396b, "·": 0x0080, "!": 0x2482 };
const TILES = new Map();

function tileOf(letter, ink) {
  const key = letter + ink;
  if (!TILES.has(key)) {
    const tile = Object.assign(document.createElement("canvas"), { width: 3, height: 5 });
    const canvas = tile.getContext("2d");
    canvas.fillStyle = ink;
    for (let at = 0; at < 15; at += 1) if ((PIXELS[letter] >> (14 - at)) & 1) canvas.fillRect(at % 3, Math.floor(at / 3), 1, 1);
    TILES.set(key, tile);
  }
  return TILES.get(key);
}

// `state` has { palette, inks, only: index of the group to highlight or -1, chosen, focus, mark }.
export function drawNode(canvas, grid, node, x, y, state) {
  const { inks } = state;
  canvas.globalAlpha = 1;
  canvas.fillStyle = inks.box;
  canvas.fillRect(x, y, grid.boxWidth, grid.boxHeight);
  const isSmall = grid.head === 0;
  canvas.lineWidth = 1;
  canvas.strokeStyle = node.ready ? inks.line : inks.bad;
  canvas.setLineDash(node.ready ? [] : [3, 2]);
  canvas.strokeRect(x + 0.5, y + 0.5, grid.boxWidth - 1, grid.boxHeight - 1);
  canvas.setLineDash([]);
  let top = y + grid.pad;
  if (!isSmall) {
    drawName(canvas, grid, node, x + grid.pad, top, inks);
    top += grid.head;
  }
  const bottom = drawCards(canvas, grid, node, x + grid.pad, top, state);
  drawBars(canvas, grid, node, x + grid.pad, Math.max(bottom, y + grid.boxHeight - grid.pad - 2 * (grid.bar + 1)), inks);
  if (node.cordoned) drawHatch(canvas, x, y, grid.boxWidth, grid.boxHeight, inks);
  if (isSmall && node.taints.length) drawCorner(canvas, x, y, grid.boxWidth, inks.quiet);
  if (isSmall && !node.ready) drawAlert(canvas, x, y, inks);
  if (state.mark) drawMark(canvas, grid, x, y, state.mark, inks);
  if (state.chosen || state.focus) {
    canvas.lineWidth = state.focus ? 3 : 2;
    canvas.strokeStyle = inks.accent;
    canvas.strokeRect(x - 1.5, y - 1.5, grid.boxWidth + 3, grid.boxHeight + 3);
  }
}

function drawName(canvas, grid, node, x, y, inks) {
  const width = grid.boxWidth - 2 * grid.pad;
  const signs = [node.ready ? "" : "!", node.cordoned ? "⊘" : "", node.taints.length ? `▾${node.taints.length}` : ""].filter(Boolean).join(" ");
  canvas.textBaseline = "middle";
  canvas.font = `600 12px ${inks.font}`;
  const signsWidth = signs ? canvas.measureText(signs).width + 6 : 0;
  canvas.fillStyle = inks.text;
  canvas.textAlign = "left";
  canvas.fillText(fitted(canvas, node.name, width - signsWidth), x, y + 8);
  if (!signs) return;
  canvas.fillStyle = node.ready ? inks.quiet : inks.bad;
  canvas.textAlign = "right";
  canvas.fillText(signs, x + width, y + 8);
}

// The end of a name tells nodes apart, so the middle is left out.
function fitted(canvas, text, width) {
  if (canvas.measureText(text).width <= width) return text;
  let kept = text.length - 1;
  let short = text;
  while (kept > 2 && canvas.measureText(short).width > width) {
    kept -= 1;
    const head = Math.ceil(kept * 0.4);
    short = `${text.slice(0, head)}…${text.slice(text.length - (kept - head))}`;
  }
  return short;
}

// The cards in order: those of each pod together, then the free ones. Which card a pod has is not known.
export function cellsOf(node) {
  const cells = [];
  for (const card of node.cards) {
    const count = Math.min(card.count, 64);
    const first = cells.length;
    for (const used of card.used) {
      for (let left = used[2]; left > 0 && cells.length < first + count; left -= 1) cells.push({ kind: card.kind, used });
    }
    while (cells.length < first + count) cells.push({ kind: card.kind, used: null });
  }
  return cells;
}

function drawCards(canvas, grid, node, left, top, state) {
  const { cell, gap, across } = grid;
  canvas.imageSmoothingEnabled = false;
  let at = 0;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  canvas.font = `600 ${Math.floor(cell * 0.58)}px ${state.inks.font}`;
  for (const { kind, used } of cellsOf(node)) {
    const x = left + (at % across) * (cell + gap);
    const y = top + Math.floor(at / across) * (cell + gap);
    drawCell(canvas, x, y, cell, kind, used, state);
    if (used && state.mark?.pods?.has(`${used[0]}/${used[1]}`)) drawCross(canvas, x, y, cell, state.inks);
    at += 1;
  }
  return top + Math.ceil(Math.max(at, 1) / across) * (cell + gap);
}

function drawCell(canvas, x, y, cell, kind, used, state) {
  // A part of a card is drawn narrower: MIG on the left, shared with a cut corner.
  const width = kind === "mig" ? Math.ceil(cell * 0.6) : cell;
  const cut = kind === "shared" ? Math.max(2, cell * 0.36) : 0;
  if (used === null) {
    canvas.lineWidth = 1;
    canvas.strokeStyle = state.inks.free;
    outline(canvas, x + 0.5, y + 0.5, width - 1, cell - 1, cut);
    canvas.stroke();
    return;
  }
  const index = state.palette.indexOf(used);
  const colour = colourOf(index);
  const isFaint = state.only >= 0 && state.only !== index;
  canvas.globalAlpha = isFaint ? 0.22 : 1;
  canvas.fillStyle = colour;
  outline(canvas, x, y, width, cell, cut);
  canvas.fill();
  if (cell < SMALL) {
    canvas.drawImage(tileOf(letterOf(index), inkOn(colour)), x + Math.floor((width - 3) / 2), y + (cell - 5) / 2);
  } else {
    canvas.fillStyle = inkOn(colour);
    canvas.fillText(letterOf(index), x + width / 2, y + cell / 2 + 0.5);
  }
  canvas.globalAlpha = 1;
}

// The card of a marked pod.
function drawCross(canvas, x, y, cell, inks) {
  canvas.lineWidth = 2;
  canvas.strokeStyle = inks.mark;
  canvas.strokeRect(x, y, cell, cell);
  canvas.beginPath();
  canvas.moveTo(x, y);
  canvas.lineTo(x + cell, y + cell);
  canvas.moveTo(x + cell, y);
  canvas.lineTo(x, y + cell);
  canvas.stroke();
}

function outline(canvas, x, y, width, height, cut) {
  canvas.beginPath();
  canvas.moveTo(x, y);
  canvas.lineTo(x + width - cut, y);
  canvas.lineTo(x + width, y + cut);
  canvas.lineTo(x + width, y + height);
  canvas.lineTo(x, y + height);
  canvas.closePath();
}

function drawBars(canvas, grid, node, x, y, inks) {
  const width = grid.boxWidth - 2 * grid.pad;
  [[node.cpu, inks.cpu], [node.memory, inks.memory]].forEach(([[used, total], ink], row) => {
    const top = y + row * (grid.bar + 1);
    canvas.fillStyle = inks.track;
    canvas.fillRect(x, top, width, grid.bar);
    canvas.fillStyle = ink;
    if (used && total) canvas.fillRect(x, top, Math.max(LEAST_BAR, width * Math.min(1, used / total)), grid.bar);
  });
}

function drawHatch(canvas, x, y, width, height, inks) {
  canvas.save();
  canvas.beginPath();
  canvas.rect(x, y, width, height);
  canvas.clip();
  canvas.strokeStyle = inks.quiet;
  canvas.globalAlpha = 0.75;
  canvas.lineWidth = 1;
  canvas.beginPath();
  for (let start = x - height; start < x + width; start += 7) {
    canvas.moveTo(start, y + height);
    canvas.lineTo(start + height, y);
  }
  canvas.stroke();
  canvas.restore();
}

// The sign of a node that is not ready, where there is no room for its name.
function drawAlert(canvas, x, y, inks) {
  canvas.fillStyle = inks.bad;
  canvas.fillRect(x, y, 5, 7);
  canvas.drawImage(tileOf("!", inks.box), x + 1, y + 1);
}

function drawCorner(canvas, x, y, width, ink) {
  canvas.fillStyle = ink;
  canvas.beginPath();
  canvas.moveTo(x + width - 5, y);
  canvas.lineTo(x + width, y);
  canvas.lineTo(x + width, y + 5);
  canvas.fill();
}

// A mark of another page: { text, tone: "from" | "to" }, such as pods that would leave, or replicas that are placed.
function drawMark(canvas, grid, x, y, mark, inks) {
  canvas.lineWidth = 2;
  canvas.strokeStyle = inks.mark;
  canvas.setLineDash(mark.tone === "from" ? [5, 3] : []);
  canvas.strokeRect(x - 1, y - 1, grid.boxWidth + 2, grid.boxHeight + 2);
  canvas.setLineDash([]);
  canvas.font = `700 11px ${inks.font}`;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  const width = canvas.measureText(mark.text).width + 8;
  const right = Math.min(x + grid.boxWidth + 4, Math.max(x + width, x + grid.boxWidth + 4));
  canvas.fillStyle = inks.mark;
  canvas.fillRect(right - width, y - 6, width, 15);
  canvas.fillStyle = inkOn(inks.mark);
  canvas.fillText(mark.text, right - width / 2, y + 2);
}

// Colours and letters of groups of pods. The colours are those of Okabe and Ito, which colour-blind people tell apart;
// each group has a letter, too, and free cards are outlines, so a colour is never the only sign.

const LETTERS = "ABCDEFG";
const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b5a900"];
const DARK = ["#3f9fe0", "#f0b429", "#1fbf92", "#e293be", "#f0743a", "#7cc7f0", "#d8cc3a"];

export const OTHER = LETTERS.length;

export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function colourOf(index) {
  if (index >= OTHER) return isDark() ? "#8b95a5" : "#7b8594";
  return (isDark() ? DARK : LIGHT)[index];
}

export function letterOf(index) {
  return index >= OTHER ? "·" : LETTERS[index];
}

// Dark or light text, whichever is better to read on the colour.
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.3 ? "#10141a" : "#ffffff";
}

const READ = {
  type: (used) => used[4],
  namespace: (used) => used[0],
  owner: (used) => (used[3] ? `${used[0]}/${used[3]}` : ""),
};

export function groupOf(by, used) {
  return READ[by](used);
}

// The seven groups with most cards get a colour and a letter, the others share one. A group keeps its own while it is
// among them, so that an update does not change the colours.
export class Palette {
  constructor() {
    this.by = "";
    this.slots = [];
    this.counts = new Map();
  }

  update(by, nodes) {
    if (by !== this.by) this.slots = new Array(OTHER).fill(null);
    this.by = by;
    this.counts = new Map();
    for (const node of nodes) {
      for (const card of node.cards) {
        for (const used of card.used) {
          const name = groupOf(by, used);
          this.counts.set(name, (this.counts.get(name) ?? 0) + used[2]);
        }
      }
    }
    const top = [...this.counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, OTHER).map(([name]) => name);
    this.slots = this.slots.map((name) => (top.includes(name) ? name : null));
    for (const name of top) if (!this.slots.includes(name)) this.slots[this.slots.indexOf(null)] = name;
    this.index = new Map(this.slots.map((name, index) => [name, index]));
  }

  indexOf(used) {
    return this.index.get(groupOf(this.by, used)) ?? OTHER;
  }

  // The rows of the legend: [index, name or null for the others, cards].
  legend() {
    const rows = this.slots.map((name, index) => [index, name, this.counts.get(name) ?? 0]).filter(([, name]) => name !== null);
    const others = [...this.counts].filter(([name]) => !this.index.has(name)).reduce((sum, [, count]) => sum + count, 0);
    return others ? [...rows, [OTHER, null, others]] : rows;
  }
}

// The map of nodes: a section for each pool and product, each with a canvas over the part that is on the screen. So a
// drawing costs what is visible, and not what the cluster has. Other pages use it with marks.
import { h, fill } from "../lib/dom.js";
import { number, t } from "../lib/i18n.js";
import { bytes, cores, percent } from "../lib/format.js";
import { cellsOf, drawNode, inksOf } from "./drawing.js";
import { letterOf, groupOf } from "./colours.js";
import { freeCards } from "./groups.js";
import { gridOf, indexAt, placeOf, visibleRange } from "./layout.js";

// What a drawing may reach over the edges of the boxes: the ring of the chosen node, and marks.
const MARGIN = 10;
// The width of the map in a group that shares its line.
const NARROW = 346;

export class NodeMap {
  // `options`: { palette, density, choose(name), announce(text), header(group) -> element }.
  constructor(options) {
    this.options = options;
    this.element = h("div", { class: "map" });
    this.tip = h("div", { class: "tip", role: "tooltip", hidden: true });
    this.help = h("p", { class: "hidden", id: "map-help" }, t("map.help"));
    this.sections = [];
    this.marks = new Map();
    this.chosen = "";
    this.only = -1;
    this.drawnNodes = 0;
    this.redraw = () => this.schedule();
    this.observer = new ResizeObserver(this.redraw);
  }

  start() {
    window.addEventListener("scroll", this.redraw, { passive: true });
    this.observer.observe(this.element);
  }

  stop() {
    window.removeEventListener("scroll", this.redraw);
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // `groups`: [{ key, nodes, ... }] in order. Sections that stay keep their elements, and so the focus.
  setGroups(groups) {
    const known = new Map(this.sections.map((section) => [section.group.key, section]));
    const sections = groups.map((group) => {
      const section = known.get(group.key) ?? new Section(this, group);
      section.setGroup(group);
      return section;
    });
    const isSame = sections.length === this.sections.length && sections.every((section, index) => section === this.sections[index]);
    this.sections = sections;
    if (!isSame || !this.element.childNodes.length) fill(this.element, this.help, sections.map((section) => section.element), this.tip);
    this.schedule();
  }

  // `marks` is a map from the name of a node to { text, tone, label, pods }; the cards of `pods`, a set of namespace/name, are crossed.
  setMarks(marks) {
    this.marks = marks;
    this.schedule();
  }

  setChosen(name) {
    this.chosen = name;
    this.schedule();
  }

  highlight(index) {
    this.only = index;
    this.schedule();
  }

  // Scrolls to a node.
  reveal(name) {
    for (const section of this.sections) {
      const index = section.group.nodes.findIndex((node) => node.name === name);
      if (index < 0) continue;
      section.cursor = index;
      section.reveal();
    }
  }

  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const started = performance.now();
    const state = { palette: this.options.palette, inks: inksOf(this.element), only: this.only };
    // All sizes first, so that the browser computes the layout once.
    for (const section of this.sections) section.spread();
    const widths = this.sections.map((section) => section.box.clientWidth);
    this.sections.forEach((section, index) => section.measure(widths[index]));
    const tops = this.sections.map((section) => section.box.getBoundingClientRect().top);
    this.drawnNodes = 0;
    this.sections.forEach((section, index) => {
      this.drawnNodes += section.draw(tops[index], state);
    });
    // The last drawing, for the tests and for the tools of a browser.
    performance.clearMeasures("map");
    performance.measure("map", { start: started, detail: { nodes: this.drawnNodes } });
  }

  showTip(node, x, y) {
    fill(this.tip, tipOf(node, this.options.palette, this.marks.get(node.name)));
    this.tip.hidden = false;
    const box = this.element.getBoundingClientRect();
    const left = Math.min(x - box.left + 14, box.width - this.tip.offsetWidth - 4);
    this.tip.style.setProperty("left", `${Math.max(0, left)}px`);
    this.tip.style.setProperty("top", `${y - box.top + 18}px`);
  }

  hideTip() {
    this.tip.hidden = true;
  }
}

class Section {
  constructor(map, group) {
    this.map = map;
    this.cursor = 0;
    this.hasFocus = false;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.box = h("div", {
      class: "map-box", tabindex: "0", role: "application", "aria-roledescription": t("map.role"), "aria-describedby": "map-help",
      on: {
        keydown: (event) => this.onKey(event),
        focus: () => this.onFocus(true),
        blur: () => this.onFocus(false),
        mousemove: (event) => this.onMove(event),
        mouseleave: () => this.map.hideTip(),
        click: (event) => this.onClick(event),
      },
    }, this.canvas);
    this.head = h("div", { class: "group-head" });
    this.element = h("section", { class: "group" }, this.head, this.box);
    this.group = group;
  }

  setGroup(group) {
    this.group = group;
    this.cursor = Math.min(this.cursor, Math.max(0, group.nodes.length - 1));
    this.box.setAttribute("aria-label", t("map.label", { pool: group.pool, product: group.product, n: group.nodes.length }));
    fill(this.head, this.map.options.header(group));
  }

  // A group of many nodes takes the whole width; smaller ones stand side by side.
  spread() {
    const narrow = gridOf(this.group.nodes, NARROW, this.map.options.density());
    this.element.classList.toggle("broad", narrow.rows > 2);
  }

  measure(width) {
    this.grid = gridOf(this.group.nodes, width, this.map.options.density());
    const height = `${this.grid.height}px`;
    if (this.box.style.height !== height) this.box.style.setProperty("height", height);
  }

  // Draws the nodes on the screen and returns their number; `boxTop` is the place of the section on the screen.
  draw(boxTop, state) {
    const { grid, group } = this;
    const top = Math.max(0, -boxTop) - MARGIN;
    const bottom = Math.min(grid.height, window.innerHeight - boxTop) + MARGIN;
    if (bottom <= top) {
      sized(this.canvas, 0, 0, 0);
      return 0;
    }
    const width = this.box.clientWidth + 2 * MARGIN;
    const canvas = sized(this.canvas, width, bottom - top, top);
    canvas.translate(MARGIN, -top);
    const [first, last] = visibleRange(grid, group.nodes.length, top, bottom);
    const marked = [];
    for (let index = first; index < last; index += 1) {
      const node = group.nodes[index];
      const { x, y } = placeOf(grid, index);
      const own = { ...state, chosen: node.name === this.map.chosen, focus: this.hasFocus && index === this.cursor, mark: this.map.marks.get(node.name) };
      if (own.mark) marked.push([node, x, y, own]);
      else drawNode(canvas, grid, node, x, y, own);
    }
    // Last, because a mark reaches over the boxes beside it.
    for (const [node, x, y, own] of marked) drawNode(canvas, grid, node, x, y, own);
    return last - first;
  }

  nodeAt(event) {
    const box = this.box.getBoundingClientRect();
    return indexAt(this.grid, this.group.nodes.length, event.clientX - box.left, event.clientY - box.top);
  }

  onMove(event) {
    const index = this.nodeAt(event);
    this.box.classList.toggle("on-node", index >= 0);
    if (index < 0) this.map.hideTip();
    else this.map.showTip(this.group.nodes[index], event.clientX, event.clientY);
  }

  onClick(event) {
    const index = this.nodeAt(event);
    if (index < 0) return;
    this.cursor = index;
    this.map.options.choose(this.group.nodes[index].name);
  }

  onFocus(hasFocus) {
    // A click focuses the section before it chooses a node; the ring is for the keyboard.
    this.hasFocus = hasFocus && this.box.matches(":focus-visible");
    if (this.hasFocus) this.say();
    this.map.schedule();
  }

  onKey(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.grid.columns, ArrowUp: -this.grid.columns, PageDown: 5 * this.grid.columns, PageUp: -5 * this.grid.columns };
    const last = this.group.nodes.length - 1;
    if (event.key in steps) this.move(Math.min(last, Math.max(0, this.cursor + steps[event.key])));
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.move(last);
    else if (event.key === "Enter" || event.key === " ") this.map.options.choose(this.group.nodes[this.cursor].name);
    else return;
    event.preventDefault();
  }

  move(index) {
    this.cursor = index;
    this.hasFocus = true;
    this.reveal();
    this.say();
  }

  reveal() {
    const { y } = placeOf(this.grid, this.cursor);
    const top = this.box.getBoundingClientRect().top + y;
    const room = 90;
    if (top < room) window.scrollBy(0, top - room);
    else if (top + this.grid.boxHeight > window.innerHeight - 20) window.scrollBy(0, top + this.grid.boxHeight - window.innerHeight + room);
    this.map.schedule();
  }

  say() {
    const node = this.group.nodes[this.cursor];
    if (node) this.map.options.announce(describe(node, this.map.marks.get(node.name)));
  }
}

function sized(canvas, width, height, top) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
  }
  canvas.style.setProperty("transform", `translate(${-MARGIN}px, ${top}px)`);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export function signsOf(node) {
  const taint = node.state.startsWith("taint ") && node.state;
  const unhealthy = node.unhealthy.map(([resource, healthy, n]) => t("node.unhealthy", { resource, healthy, n }));
  return [!node.ready && t("node.notReady"), node.cordoned && t("node.cordoned"), taint, ...unhealthy].filter(Boolean);
}

// One sentence about a node, for screen readers and for the table.
export function describe(node, mark = null) {
  const cards = cellsOf(node).length;
  const parts = [node.name, t("node.free", { free: freeCards(node), n: cards }), ...signsOf(node)];
  if (node.taints.length) parts.push(t("node.taints", { n: node.taints.length }));
  if (mark?.label) parts.push(mark.label);
  return parts.join(", ");
}

function tipOf(node, palette, mark) {
  const counts = new Map();
  for (const card of node.cards) {
    for (const used of card.used) {
      const key = groupOf(palette.by, used);
      const known = counts.get(key) ?? [palette.indexOf(used), 0];
      counts.set(key, [known[0], known[1] + used[2]]);
    }
  }
  const users = [...counts].slice(0, 8).map(([name, [index, count]]) => h("li", null, `${letterOf(index)} ${name || t("none")}: ${number(count)}`));
  return [
    h("strong", null, node.name),
    mark?.label && h("p", { class: "tip-mark" }, mark.label),
    h("p", null, [t("node.free", { free: freeCards(node), n: cellsOf(node).length }), ...signsOf(node)].join(" · ")),
    users.length > 0 && h("ul", null, users),
    h("p", null, t("node.use", { cpu: `${cores(node.cpu[0])} / ${cores(node.cpu[1])}`, memory: `${bytes(node.memory[0])} / ${bytes(node.memory[1])}` })),
    node.taints.length > 0 && h("p", { class: "quiet" }, node.taints.slice(0, 4).join("\n")),
  ];
}

export function groupTitle(group) {
  const none = group.product === "none";
  const place = group.domain === null ? t("domain.none") : group.pool === "none" ? t("pool.none") : group.pool || '""';
  return [h("h2", null, place, h("span", { class: "product" }, none ? t("product.none") : group.product))];
}

export function groupNumbers(group) {
  const nodes = h("span", null, t("group.nodes", { n: group.nodes.length }));
  if (group.rows.length === 1 && !group.rows[0].resource) return h("p", { class: "numbers" }, nodes, numbersOf(group.rows[0]));
  return [h("p", { class: "numbers" }, nodes), group.rows.map((row) => h("p", { class: "numbers" }, row.resource && h("span", null, row.resource), numbersOf(row)))];
}

function numbersOf(row) {
  return [
    h("span", null, t("group.free", { free: row.free, cards: row.cards, share: percent(row.cards ? row.free / row.cards : 0) })),
    h("span", null, t("group.largest", { n: row.largest })),
    row.fragmented !== undefined && h("span", { title: t("group.fragmented.help") }, t("group.fragmented", { share: percent(row.fragmented) })),
  ];
}

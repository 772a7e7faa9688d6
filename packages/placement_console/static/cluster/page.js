// The page Cluster: the map of all nodes or the same as a table, filters, legend, and the details of a node.
import { h, fill } from "../lib/dom.js";
import { number, t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { bytes, cores } from "../lib/format.js";
import { choice, input, loading, message, refill, switcher, table } from "../lib/widgets.js";
import { Palette } from "./colours.js";
import { NodeDetails } from "./details.js";
import { freeCards, grouped, groupedByDomain } from "./groups.js";
import { heldCards, heldOn } from "./held.js";
import { DENSITIES, cardCount, densityFor } from "./layout.js";
import { legend } from "./legend.js";
import { NodeMap, groupNumbers, groupTitle, signsOf } from "./map.js";
import { texts } from "./texts.js";

const COLOURS = ["type", "namespace", "owner"];
const BLOCKS = [1, 2, 4, 8];
const HELD = ["terminating", "node-down", "crash-loop", "image-pull", "config-error"];

export const clusterPage = {
  id: "cluster",
  texts,
  mount(root, app) {
    const page = new ClusterPage(root, app);
    page.start();
    return page;
  },
};

class ClusterPage {
  constructor(root, app) {
    this.root = root;
    this.app = app;
    this.store = app.store;
    this.kept = app.keptFor("cluster");
    this.choices = app.placeFor("cluster");
    this.palette = (this.kept.palette ??= new Palette());
    this.map = new NodeMap({
      palette: this.palette,
      density: () => this.density(),
      choose: (name) => this.choose(name),
      announce: (text) => app.announce(text),
      header: (group) => [groupTitle(group), groupNumbers(group)],
    });
    this.details = new NodeDetails(this.store, this.palette, () => this.choose(""));
  }

  start() {
    this.controls = h("div", { class: "controls" });
    this.summary = h("p", { class: "summary" });
    this.legend = h("div", { class: "legend", role: "group", "aria-label": t("legend") });
    this.content = h("div", { class: "content" });
    fill(this.root, h("h1", { class: "hidden" }, t("cluster.title")), this.controls, this.summary, this.legend, h("div", { class: "with-side" }, this.content, this.details.element));
    this.map.start();
    this.map.setMarks(this.kept.marks ?? new Map());
    this.unfollow = this.store.follow((changed) => this.onChange(changed));
    this.drawControls();
    this.update();
    if (this.choices.node) this.choose(this.choices.node, false);
  }

  unmount() {
    this.unfollow();
    this.map.stop();
  }

  density() {
    const { density } = this.choices;
    return DENSITIES.includes(density) ? density : densityFor(this.shown?.length ?? 0);
  }

  onChange(changed) {
    // Without nodes, the status is what the page shows.
    if (changed?.size === 0 && this.store.nodes.size) return;
    if (changed === null) this.drawControls();
    this.update();
    if (changed === null || changed.has(this.details.name)) this.details.refresh();
  }

  // A cluster without workload types is coloured by namespace.
  by(nodes) {
    const { by } = this.choices;
    if (COLOURS.includes(by) || !nodes.length) return COLOURS.includes(by) ? by : COLOURS[0];
    return (this.kept.by ??= COLOURS[nodes.some((node) => node.cards.some((card) => card.used.some((used) => used[4]))) ? 0 : 1]);
  }

  set(name, value) {
    this.app.put({ [name]: value }, name !== "search");
    this.update();
  }

  choose(name, isStep = true) {
    this.app.put({ node: name }, isStep);
    this.map.setChosen(name);
    this.details.show(name);
    this.root.classList.toggle("has-side", Boolean(name));
    this.map.schedule();
  }

  matches(node) {
    const { pool, product, namespace, block, held, search } = this.choices;
    return (!pool || node.pool === pool) && (!product || node.product === product) && (!search || node.name.includes(search))
      && (!block || freeCards(node) >= Number(block))
      && (!held || heldOn(node, this.store.now()).some((row) => held === "any" || row.class === held))
      && (!namespace || node.cards.some((card) => card.used.some((used) => used[0] === namespace)));
  }

  update() {
    const nodes = [...this.store.nodes.values()];
    this.shown = nodes.filter((node) => this.matches(node));
    this.palette.update(this.by(nodes), nodes);
    const cards = this.shown.reduce((sum, node) => sum + cardCount(node), 0);
    const free = this.shown.reduce((sum, node) => sum + freeCards(node), 0);
    fill(this.summary, t("cluster.summary", { nodes: this.shown.length, cards, free }));
    fill(this.legend, legend(this.palette, (index) => this.map.highlight(index), this.shown));
    this.drawContent(nodes.length);
  }

  drawContent(total) {
    const { status, reason } = this.store;
    if (!this.shown.length) {
      fill(this.content, !total && status !== "live" ? (status === "lost" ? message(t("status.lost"), own(reason), "error") : loading()) : total ? message(t("cluster.empty"), t("cluster.empty.text")) : message(t("cluster.none"), t("cluster.none.text")));
    } else if (this.choices.show !== "table") {
      if (this.map.element.parentNode !== this.content) fill(this.content, this.map.element);
      const { domain } = this.choices;
      this.map.setGroups(domain ? groupedByDomain(this.shown, domain) : grouped(this.shown, this.store.groups));
    } else {
      refill(this.content, this.table());
    }
  }

  table() {
    return table(t("cluster.title"), [
      { title: t("column.node"), cell: (node) => node.name },
      { title: t("node.pool"), cell: (node) => node.pool },
      { title: t("node.product"), cell: (node) => node.product, wide: true },
      { title: t("column.cards"), number: true, cell: (node) => number(cardCount(node)) },
      { title: t("column.free"), number: true, cell: (node) => number(freeCards(node)) },
      { title: t("column.held"), number: true, cell: (node) => number(heldCards(node, this.store.now())) },
      { title: t("node.cpu"), number: true, cell: (node) => `${cores(node.cpu[0])} / ${cores(node.cpu[1])}` },
      { title: t("node.memory"), number: true, cell: (node) => `${bytes(node.memory[0])} / ${bytes(node.memory[1])}` },
      { title: t("node.state"), cell: (node) => signsOf(node).join(", ") || t("node.ready") },
      { title: t("node.taint"), cell: (node) => node.taints.join("\n"), wide: true },
    ], this.shown, { onRow: (node) => this.choose(node.name), isChosen: (node) => node.name === this.choices.node });
  }

  drawControls() {
    const { choices } = this;
    const nodes = [...this.store.nodes.values()];
    const values = (read) => [...new Set(nodes.flatMap(read))].sort();
    const options = (found) => [["", t("filter.all")], ...found.map((value) => [value, value])];
    const namespaces = values((node) => node.cards.flatMap((card) => card.used.map((used) => used[0])));
    const blocks = [["", t("filter.block.any")], ...BLOCKS.map((n) => [String(n), t("filter.block.least", { n })])];
    const held = [["", t("filter.all")], ["any", t("filter.held.any")], ...HELD.map((name) => [name, t(`held.${name}`)])];
    const by = COLOURS.map((name) => [name, t(`colour.${name}`)]);
    const domains = [["", t("group.pool")], ...values((node) => Object.keys(node.domains)).map((name) => [name, name])];
    const sizes = [["", t("density.auto")], ...DENSITIES.map((name) => [name, t(`density.${name}`)])];
    const ways = [["", t("show.map")], ["table", t("show.table")]];
    // One element for all drawings, so a user can type while nodes come and go.
    this.search ??= input(t("filter.search"), choices.search ?? "", (value) => this.set("search", value), { placeholder: t("filter.search.hint"), type: "search", spellcheck: "false" });
    const fields = () => [...this.controls.querySelectorAll("select, input, button")];
    const focused = fields().indexOf(document.activeElement);
    fill(this.controls,
      choice(t("filter.pool"), options(values((node) => [node.pool])), choices.pool, (value) => this.set("pool", value)),
      choice(t("filter.product"), options(values((node) => [node.product])), choices.product, (value) => this.set("product", value)),
      choice(t("filter.namespace"), options(namespaces), choices.namespace, (value) => this.set("namespace", value)),
      choice(t("filter.block"), blocks, choices.block, (value) => this.set("block", value)),
      choice(t("filter.held"), held, choices.held, (value) => this.set("held", value)),
      this.search,
      choice(t("colour.by"), by, this.by(nodes), (value) => this.set("by", value)),
      choice(t("group.by"), domains, choices.domain, (value) => this.set("domain", value)),
      h("div", { class: "field" }, h("span", null, t("density")), switcher(t("density"), sizes, choices.density ?? "", (value) => this.set("density", value))),
      h("div", { class: "field" }, h("span", null, t("show")), switcher(t("show"), ways, choices.show ?? "", (value) => this.set("show", value))));
    fields()[focused]?.focus({ preventScroll: true });
  }
}

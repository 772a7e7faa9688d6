// The details of one node: facts of the map at once, labels and all pods as the server has them.
import { h, fill } from "../lib/dom.js";
import { getJson, hasAnswer } from "../lib/api.js";
import { number, t } from "../lib/i18n.js";
import { bytes, cores } from "../lib/format.js";
import { bar, errorBox, loading, refill, table } from "../lib/widgets.js";
import { swatch } from "./legend.js";
import { freeCards } from "./groups.js";
import { signsOf } from "./map.js";

export class NodeDetails {
  constructor(store, palette, close) {
    this.store = store;
    this.palette = palette;
    this.close = close;
    this.name = "";
    this.element = h("aside", { class: "side", hidden: true, on: { keydown: (event) => event.key === "Escape" && this.leave() } });
  }

  leave() {
    this.close();
    document.querySelector(".map-box, .table-box")?.focus();
  }

  show(name) {
    this.name = name;
    this.element.hidden = !name;
    if (!name) return;
    this.element.setAttribute("aria-label", t("node.details", { name }));
    this.facts = h("div");
    this.pods = h("div", null, loading());
    const button = h("button", { type: "button", class: "close", "aria-label": t("close"), on: { click: () => this.leave() } }, "×");
    fill(this.element, h("div", { class: "side-head" }, h("h2", null, name), button), this.facts, this.pods);
    this.refresh();
    button.focus({ preventScroll: window.innerWidth > 900 });
  }

  refresh() {
    if (!this.name) return;
    const node = this.store.nodes.get(this.name);
    fill(this.facts, node ? this.factsOf(node) : h("p", null, t("node.gone")));
    if (node) this.load(node);
  }

  async load(node) {
    const query = { name: node.name };
    try {
      const found = hasAnswer("/api/node", query) ? await getJson("/api/node", query) : ofMap(node);
      if (this.name === node.name) refill(this.pods, this.podsOf(found), this.labelsOf(found.labels));
    } catch (error) {
      if (this.name === node.name) fill(this.pods, errorBox(error));
    }
  }

  factsOf(node) {
    const share = ([used, total]) => (total ? used / total : 0);
    const signs = signsOf(node);
    const facts = [
      [t("node.state"), signs.length ? h("strong", { class: "bad" }, signs.join(", ")) : t("node.ready")],
      [t("node.pool"), node.pool],
      [t("node.product"), node.product],
      ...node.cards.map((card) => [card.resource, t("node.free", { free: Math.min(freeCards(node), card.count - card.used.reduce((sum, used) => sum + used[2], 0)), n: card.count })]),
      [t("node.pods"), t("node.podCount", { used: node.pods[0], most: node.pods[1] })],
    ];
    if (node.taints.length) facts.push([t("node.taint"), node.taints.map((taint) => h("code", { class: "line" }, taint))]);
    return [
      h("dl", null, facts.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
      bar(t("legend.cpu"), share(node.cpu), `${cores(node.cpu[0])} / ${cores(node.cpu[1])}`),
      bar(t("legend.memory"), share(node.memory), `${bytes(node.memory[0])} / ${bytes(node.memory[1])}`),
    ];
  }

  podsOf(found) {
    if (!found.pods.length) return h("p", { class: "quiet" }, t("node.noPods"));
    const cardsOf = (pod) => Object.entries(pod.others).map(([resource, amount]) => h("span", { class: "line" }, `${number(amount)} ${resource}`));
    const sample = (pod) => (Object.keys(pod.others).length ? swatch(this.palette.indexOf([pod.namespace, pod.name, 0, pod.owner, pod.type])) : null);
    return table(t("node.pods"), [
      { title: t("column.pod"), wide: true, cell: (pod) => [sample(pod), ` ${pod.namespace}/${pod.name}`, pod.terminating && h("em", null, ` ${t("pod.terminating")}`), pod.held && h("em", null, ` ${t(`held.${pod.held}`)}`)] },
      { title: t("column.cards"), cell: cardsOf },
      { title: t("column.owner"), wide: true, cell: (pod) => pod.owner },
      { title: t("column.type"), cell: (pod) => pod.type },
    ], found.pods, { most: 50 });
  }

  labelsOf(labels) {
    if (!labels) return null;
    return h("details", null, h("summary", null, t("node.labels")), Object.entries(labels).map(([key, value]) => h("code", { class: "line" }, `${key}=${value}`)));
  }
}

// What the map knows of the pods, for a report.
function ofMap(node) {
  const pods = node.cards.flatMap((card) => card.used.map(([namespace, name, amount, owner, type]) => ({ namespace, name, owner, type, others: { [card.resource]: amount } })));
  return { pods };
}

// The page Pending: the pods that wait in the order of the queue, and the details of the chosen one.
import { h, fill } from "../lib/dom.js";
import { getJson } from "../lib/api.js";
import { number, t } from "../lib/i18n.js";
import { duration } from "../lib/format.js";
import { choice, errorBox, input, loading, message, refill } from "../lib/widgets.js";
import { heldList } from "../cluster/held.js";
import { PodDetails, reasonOf } from "./details.js";
import { texts } from "./texts.js";

const TONES = { unschedulable: "bad", queued: "good", gated: "warn", terminating: "", nominated: "warn", preemption: "warn", room: "bad", "no-scheduler": "bad" };
const WAIT_MILLISECONDS = 3000;

export const pendingPage = {
  id: "pending",
  texts,
  mount(root, app) {
    const page = new PendingPage(root, app);
    page.start();
    return page;
  },
};

export function cardsOf(requests) {
  return Object.entries(requests).filter(([resource]) => resource.includes("/"));
}

class PendingPage {
  constructor(root, app) {
    this.app = app;
    this.store = app.store;
    this.place = app.placeFor("pending");
    this.root = root;
    this.details = new PodDetails(app);
  }

  start() {
    const search = input(t("pending.search"), this.place.search ?? "", (value) => this.filter("search", value), { placeholder: t("pending.search.hint"), type: "search", spellcheck: "false" });
    this.choices = h("span", { class: "choices" });
    this.controls = h("div", { class: "controls" }, search, this.choices);
    this.summary = h("p", { class: "summary" });
    this.order = h("p", { class: "quiet order" });
    this.list = h("div", { class: "content" }, loading());
    this.held = h("section", { class: "held" });
    fill(this.root, h("h1", { class: "hidden" }, t("pending.title")), this.controls, this.summary, this.order, h("div", { class: "with-side pending" }, this.list, this.details.element), this.held);
    this.unfollow = this.store.follow((changed) => changed?.size !== 0 && this.loadSoon());
    this.load();
  }

  unmount() {
    this.unfollow();
    this.details.leave();
    clearTimeout(this.timer);
  }

  // A busy cluster changes all the time: the list is asked for once in a while.
  loadSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.load();
    }, WAIT_MILLISECONDS);
  }

  async load() {
    try {
      this.found = await getJson("/api/pending");
      this.draw();
    } catch (error) {
      fill(this.list, errorBox(error));
    }
  }

  draw() {
    const { groups: all } = this.found;
    this.drawChoices();
    const groups = all.filter((group) => this.matches(group));
    const cards = new Map();
    for (const group of groups) for (const [resource, amount] of cardsOf(group.requests)) cards.set(resource, (cards.get(resource) ?? 0) + amount * group.count);
    const pods = groups.reduce((sum, group) => sum + group.count, 0);
    const sums = [t(pods === this.found.pods ? "pending.summary" : "pending.summary.of", { n: this.found.pods, shown: number(pods) }), ...[...cards].map(([resource, amount]) => `${number(amount)} ${resource}`)];
    fill(this.summary, sums.join(" · "));
    refill(this.held, heldList([...this.store.nodes.values()], this.store.now(), (node) => this.app.open("cluster", { node })));
    fill(this.order, groups.length > 1 && t("pending.order"));
    if (!groups.length) {
      fill(this.list, all.length ? message(t("pending.nothing"), t("pending.nothing.text")) : message(t("pending.none"), t("pending.none.text")));
      this.details.show(null);
      return;
    }
    this.chosen = this.chosenOf(groups);
    const focused = document.activeElement?.dataset?.key;
    fill(this.list, h("ol", { class: "rows" }, groups.map((group) => this.row(group))));
    if (focused) [...this.list.querySelectorAll("button")].find((each) => each.dataset.key === focused)?.focus();
    this.details.show(this.chosen);
  }

  matches(group) {
    const { state, namespace, search } = this.place;
    const texts = [group.owner, ...group.names].map((name) => `${group.namespace}/${name}`);
    return (!state || stateOf(group) === state) && (!namespace || group.namespace === namespace) && (!search || texts.some((text) => text.includes(search)));
  }

  // The group of the pod in the address; once the pod has a node, the rest of its group. A wide page shows the first one.
  chosenOf(groups) {
    const { pod } = this.place;
    const named = pod && groups.find((group) => group.names.some((name) => pod === `${group.namespace}/${name}`));
    return named || groups.find((group) => this.chosen && keyOf(group) === keyOf(this.chosen)) || (window.innerWidth > 1000 ? groups[0] : null);
  }

  drawChoices() {
    const options = (read, named) => {
      const counts = new Map();
      for (const group of this.found.groups) counts.set(read(group), (counts.get(read(group)) ?? 0) + group.count);
      return [["", t("pending.all")], ...[...counts].map(([value, n]) => [value, `${named(value)} (${number(n)})`])];
    };
    const index = [...this.choices.querySelectorAll("select")].indexOf(document.activeElement);
    const stateNamed = (state) => (state in TONES ? t(`state.${state}`) : state);
    fill(this.choices,
      choice(t("pending.state"), options(stateOf, stateNamed), this.place.state, (value) => this.filter("state", value)),
      choice(t("pending.namespace"), options((group) => group.namespace, String), this.place.namespace, (value) => this.filter("namespace", value)));
    this.choices.querySelectorAll("select")[index]?.focus();
  }

  filter(name, value) {
    this.app.put({ [name]: value }, name !== "search");
    if (this.found) this.draw();
  }

  row(group) {
    const state = stateOf(group);
    const key = keyOf(group);
    const isChosen = group === this.chosen;
    const goes = group.nodes[group.names[0]];
    const why = reasonOf(group) || (goes ? t("pending.goes", { node: goes }) : t(`state.${state}.help`));
    const age = group.created ? t("pending.since", { age: duration((this.store.now() - Date.parse(group.created)) / 1000) }) : "";
    return h("li", null, h("button", {
      type: "button", class: `row ${isChosen ? "chosen" : ""}`, "aria-pressed": String(isChosen), "data-key": key,
      on: { click: () => this.choose(group) },
    },
    h("span", { class: "row-title" }, h("span", { class: `badge ${TONES[state]}`, title: t(`state.${state}.help`) }, t(`state.${state}`)),
      h("strong", null, titleOf(group)), h("span", { class: "quiet" }, group.namespace), group.count > 1 && h("span", { class: "badge" }, t("pending.count", { n: group.count }))),
    h("span", { class: "row-why" }, why),
    h("span", { class: "row-facts quiet" }, [...cardsOf(group.requests).map(([resource, amount]) => `${number(amount)} × ${resource}`), t("pending.priority", { n: group.priority }), age].filter(Boolean).map((text) => h("span", null, text)))));
  }

  choose(group) {
    this.chosen = group;
    this.app.put({ pod: `${group.namespace}/${group.names[0]}` });
    for (const each of this.list.querySelectorAll("button.row")) {
      const isChosen = each.dataset.key === keyOf(group);
      each.classList.toggle("chosen", isChosen);
      each.setAttribute("aria-pressed", String(isChosen));
    }
    this.details.show(group);
    if (window.innerWidth <= 1000) this.details.element.scrollIntoView({ block: "start" });
  }
}

// What the pod waits for as the check predicts it, or else what its scheduler and its spec say.
function stateOf(group) {
  return group.waitsFor || group.state;
}

function keyOf(group) {
  return JSON.stringify([group.namespace, group.owner || group.names[0], group.state, group.priority]);
}

export function titleOf(group) {
  return group.owner || group.names[0];
}

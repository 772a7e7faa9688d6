// The page Pending: the pods that wait in the order of the queue, and the details of the chosen one.
import { h, fill } from "../lib/dom.js";
import { getJson } from "../lib/api.js";
import { number, t } from "../lib/i18n.js";
import { duration } from "../lib/format.js";
import { choice, errorBox, loading, message } from "../lib/widgets.js";
import { heldList } from "../cluster/held.js";
import { PodDetails } from "./details.js";
import { texts } from "./texts.js";

const TONES = { unschedulable: "bad", queued: "good", gated: "warn", terminating: "", nominated: "warn", preemption: "warn", room: "bad" };
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
    this.kept = app.keptFor("pending");
    this.root = root;
    this.details = new PodDetails(app);
  }

  start() {
    this.controls = h("div", { class: "controls" });
    this.summary = h("p", { class: "summary" });
    this.order = h("p", { class: "quiet order" });
    this.list = h("div", { class: "content" }, loading());
    this.held = h("section", { class: "held" });
    fill(this.root, h("h1", { class: "hidden" }, t("pending.title")), this.summary, this.order, this.controls, h("div", { class: "with-side pending" }, this.list, this.details.element), this.held);
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
    const { pods } = this.found;
    this.drawControls();
    // A state that no pod has any more filters nothing.
    const isKnown = this.found.groups.some((group) => stateOf(group) === this.kept.state);
    const groups = this.found.groups.filter((group) => !isKnown || stateOf(group) === this.kept.state);
    fill(this.summary, t("pending.summary", { n: pods }));
    fill(this.held, heldList([...this.store.nodes.values()], this.store.now(), (node) => this.app.open("cluster", { node })));
    fill(this.order, groups.length > 1 && t("pending.order"));
    if (!groups.length) {
      fill(this.list, message(t("pending.none"), t("pending.none.text")));
      this.details.show(null);
      return;
    }
    if (!groups.some((group) => keyOf(group) === this.kept.chosen) && window.innerWidth > 1000) this.kept.chosen = keyOf(groups[0]);
    const focused = document.activeElement?.dataset?.key;
    fill(this.list, h("ol", { class: "rows" }, groups.map((group) => this.row(group))));
    if (focused) [...this.list.querySelectorAll("button")].find((each) => each.dataset.key === focused)?.focus();
    this.details.show(groups.find((group) => keyOf(group) === this.kept.chosen) ?? null);
  }

  drawControls() {
    const counts = new Map();
    for (const group of this.found.groups) counts.set(stateOf(group), (counts.get(stateOf(group)) ?? 0) + group.count);
    const options = [...counts].map(([state, n]) => [state, `${t(`state.${state}`)} (${number(n)})`]);
    const isFocused = this.controls.contains(document.activeElement);
    fill(this.controls, counts.size > 0 && choice(t("pending.state"), [["", t("pending.state.all")], ...options], this.kept.state ?? "", (state) => this.filter(state)));
    if (isFocused) this.controls.querySelector("select")?.focus();
  }

  filter(state) {
    this.kept.state = state;
    this.draw();
  }

  row(group) {
    const state = stateOf(group);
    const key = keyOf(group);
    const isChosen = key === this.kept.chosen;
    const goes = group.nodes[group.names[0]];
    const why = group.gates.length ? t("pending.gates", { gates: group.gates.join(", ") }) : group.message || (goes ? t("pending.goes", { node: goes }) : t(`state.${state}.help`));
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
    this.kept.chosen = keyOf(group);
    for (const each of this.list.querySelectorAll("button.row")) {
      const isChosen = each.dataset.key === this.kept.chosen;
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

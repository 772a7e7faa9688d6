// Why a pod waits: words of its scheduler, reasons of the nodes, suggestions, and what would make room.
import { h, fill } from "../lib/dom.js";
import { getJson, hasAnswer } from "../lib/api.js";
import { number, t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { errorBox, loading, message, trackOf } from "../lib/widgets.js";
import { MakeRoom } from "./room.js";
import { verdictText, victimsOf } from "./victims.js";

const TONES = { Feasible: "good", Waiting: "warn", Infeasible: "bad", Refused: "bad", Invalid: "bad" };
const MOST_NAMES = 12;
const MOST_REASONS = 6;
const MOST_LISTED = 200;

export class PodDetails {
  constructor(app) {
    this.app = app;
    this.element = h("section", { class: "side wide", "aria-live": "off" });
    this.key = "";
  }

  leave() {
    this.room?.leave();
    this.victims?.stop();
  }

  show(group) {
    this.element.classList.toggle("empty", !group);
    if (!group) {
      this.key = "";
      fill(this.element, message(t("pending.choose")));
      return;
    }
    const query = { namespace: group.namespace, name: group.names[0] };
    const key = JSON.stringify([query, group.state, group.message]);
    if (key === this.key) return;
    this.key = key;
    this.leave();
    this.room = new MakeRoom(this.app, query);
    const body = h("div", null, loading());
    fill(this.element, h("div", { class: "side-head" }, h("h2", null, `${group.namespace}/${group.names[0]}`)), wordsOf(group), body);
    if (hasAnswer("/api/pending/explain", query)) this.load(body, query, key);
    else fill(body);
  }

  async load(body, query, key) {
    try {
      const answer = await getJson("/api/pending/explain", query);
      if (key !== this.key) return;
      this.victims = victimsOf(this.app, answer);
      fill(body, verdictOf(answer), this.victims.element, this.room.element, reasonsOf(answer));
    } catch (error) {
      if (key === this.key) fill(body, errorBox(error));
    }
  }
}

// Why a pod waits: its scheduler does not run, its gates, or the words of its scheduler.
export function reasonOf(group) {
  if (group.state === "no-scheduler") return t("pending.noScheduler", { scheduler: group.scheduler });
  return group.gates.length ? t("pending.gates", { gates: group.gates.join(", ") }) : group.message;
}

function wordsOf(group) {
  const words = reasonOf(group);
  return part(t(group.state === "no-scheduler" ? "explain.why" : "explain.words"), words ? h("p", { class: "words" }, words) : h("p", { class: "quiet" }, t("explain.none")));
}

export function part(title, ...children) {
  return h("section", { class: "part" }, h("h3", null, title), children);
}

function verdictOf(answer) {
  const { feasible, total } = answer.nodes;
  const counts = total ? `${t("explain.nodes", { feasible, total })}${answer.node ? ` · ${t("explain.best", { node: answer.node })}` : ""}` : "";
  return [
    part(t("explain.now"), h("p", null, h("span", { class: `badge ${TONES[answer.verdict] ?? ""}` }, verdictText(answer)), ` ${counts}`),
      h("p", { class: "words" }, own(answer.message)),
      answer.unmodelled.length > 0 && h("p", { class: "quiet" }, t("explain.unmodelled", { names: answer.unmodelled.join(", ") })),
      answer.remarks.map((text) => h("p", { class: "quiet" }, own(text))),
      h("p", { class: "quiet" }, answer.injected.policy ? t("explain.injected", { policy: answer.injected.policy, rules: answer.injected.rules.map((rule) => rule.name).join(", ") }) : t("explain.notInjected"))),
    (answer.overdue ?? []).length > 0 && part(t("explain.overdue"), answer.overdue.map((text) => h("p", { class: "words" }, own(text)))),
    answer.suggestions.length > 0 && part(t("explain.suggestions"), h("ol", { class: "suggestions" }, answer.suggestions.map((text) => h("li", null, own(text))))),
  ];
}

function reasonsOf(answer) {
  const { total, reasons } = answer.nodes;
  return [
    Object.keys(reasons).length > 0 && part(t("explain.reasons"), reasonBars(reasons, total), answer.withoutPods.length > 0 && h("p", { class: "quiet" }, t("explain.withoutPods", { n: answer.withoutPods.length }))),
    part(t("explain.first"), answer.reserved ? h("p", null, own(answer.reserved)) : h("p", { class: "quiet" }, t("explain.first.none")),
      answer.withoutPending.length > 0 && h("p", null, t("explain.withoutPending", { nodes: answer.withoutPending.slice(0, MOST_NAMES).join(", ") }))),
  ];
}

// The reasons with the number of nodes that give each; the names are in a part that opens.
export function reasonBars(reasons, total) {
  const rows = Object.entries(reasons).map(([reason, nodes]) => h("li", null,
    h("details", null,
      h("summary", null, h("span", { class: "reason-count" }, number(nodes.length)), h("span", { class: "reason" }, own(reason)),
        trackOf(nodes.length / Math.max(1, total))),
      h("p", { class: "quiet names" }, nodes.slice(0, MOST_LISTED).join(", "), nodes.length > MOST_LISTED && " …"))));
  const rest = rows.slice(MOST_REASONS);
  return [
    h("ul", { class: "reasons" }, rows.slice(0, MOST_REASONS)),
    rest.length > 0 && h("details", { class: "rest" }, h("summary", null, t("explain.more", { n: rest.length })), h("ul", { class: "reasons" }, rest)),
  ];
}

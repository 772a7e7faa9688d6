// The result for the pods of one template: patch, verdict, scores, reasons, places, and how many more fit.
import { h } from "../lib/dom.js";
import { number, t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { table } from "../lib/widgets.js";
import { SmallMap } from "../cluster/small_map.js";
import { part, reasonBars } from "../pending/details.js";
import { verdictText, victimsOf } from "../pending/victims.js";
import { diffOf, rulesOf } from "../admissions/patch.js";
import { scoreTable } from "./scores.js";

const TONES = { Feasible: "good", Waiting: "warn", Infeasible: "bad", Refused: "bad", Invalid: "bad" };
const OUTCOMES = { Patched: "good", Unchanged: "good", Denied: "bad", Invalid: "bad", Error: "bad" };

// Returns { element, stop() }.
export function resultOf(app, pod) {
  const places = placesOf(pod);
  const map = places.size > 0 ? new SmallMap(app, marksOf(places), t("try.placed")) : null;
  const victims = victimsOf(app, pod);
  const element = h("article", { class: "card result" }, head(pod), admission(pod), verdict(pod), victims.element, scores(pod), reasons(pod), map && placed(app, places, map), further(pod));
  const stop = () => {
    map?.stop();
    victims.stop();
  };
  return { element, stop };
}

// A table with a row for each template; `open(pod)` shows one.
export function overviewOf(pods, open) {
  return table(t("try.overview"), [
    { title: t("try.template"), cell: (pod) => pod.title, wide: true },
    { title: t("admissions.verdict"), cell: (pod) => [outcomeOf(pod), " ", badgeOf(pod)], wide: true },
    { title: t("try.replicas"), number: true, cell: (pod) => (pod.replicas ? `${number(pod.fits ?? 0)} / ${number(pod.replicas)}` : "") },
    { title: t("admissions.reason"), wide: true, cell: (pod) => h("span", { class: "row-why" }, own(pod.faults[0] || pod.reason || pod.message || "")) },
  ], pods, {
    stacks: true,
    onRow: (pod, element) => {
      for (const each of element.parentNode.querySelectorAll(".chosen")) each.classList.remove("chosen");
      element.classList.add("chosen");
      open(pod);
    },
  });
}

function outcomeOf(pod) {
  return h("span", { class: `badge ${OUTCOMES[pod.outcome] ?? ""}` }, t(`outcome.${pod.outcome}`));
}

function badgeOf(pod) {
  return h("span", { class: `badge ${TONES[pod.verdict] ?? ""}` }, verdictText(pod));
}

function head(pod) {
  const facts = [pod.policyInForce && t("try.policy", { policy: pod.policyInForce }), pod.type && t("try.type", { type: pod.type }), pod.qosClass && t("try.qos", { qos: pod.qosClass })];
  return h("header", { class: "result-head" }, h("h2", null, pod.title),
    outcomeOf(pod), badgeOf(pod), h("span", { class: "quiet" }, facts.filter(Boolean).join(" · ")));
}

function admission(pod) {
  if (pod.faults.length) return h("div", { class: "message error" }, pod.faults.map((text) => h("pre", null, own(text))));
  return [
    pod.warnings.length > 0 && part(t("try.warnings"), h("ul", { class: "warnings" }, pod.warnings.map((text) => h("li", null, own(text))))),
    part(t("try.patch"), pod.reason && h("p", { class: "words" }, own(pod.reason)),
      pod.diff.length ? diffOf(pod.diff) : h("p", { class: "quiet" }, t("try.patch.none")),
      pod.rules.length > 0 && h("details", null, h("summary", null, t("try.rules")), rulesOf(pod.rules)),
      pod.operations.length > 0 && h("details", null, h("summary", null, t("try.operations")), h("pre", { class: "code", tabindex: "0" }, JSON.stringify(pod.operations, null, 2)))),
  ];
}

function verdict(pod) {
  if (pod.faults.length || pod.verdict === "Refused") return null;
  const { feasible, total } = pod.nodes;
  const lines = [pod.replicasText, ...pod.gang, pod.reservedText].filter(Boolean);
  return [
    part(t("explain.now"), h("p", null, total ? t("explain.nodes", { feasible, total }) : "", pod.node ? ` · ${t("explain.best", { node: pod.node })}` : ""),
      pod.message && h("p", { class: "words" }, own(pod.message)), lines.map((text) => h("p", null, own(text))),
      pod.withoutPending.length > 0 && h("p", { class: "quiet" }, t("explain.withoutPending", { nodes: pod.withoutPending.slice(0, 12).join(", ") })),
      pod.unmodelled.length > 0 && h("p", { class: "quiet" }, t("explain.unmodelled", { names: pod.unmodelled.join(", ") }))),
    pod.suggestions.length > 0 && part(t("explain.suggestions"), h("ol", { class: "suggestions" }, pod.suggestions.map((text) => h("li", null, own(text))))),
  ];
}

function scores(pod) {
  if (!pod.scores.length) return null;
  const isNext = pod.fits !== undefined && pod.fits !== null && pod.fits < pod.replicas;
  return part(t("try.scores"), isNext && h("p", { class: "quiet" }, t("try.scores.next")), scoreTable(pod.scores),
    pod.nodes.feasible > pod.scores.length && h("p", { class: "quiet" }, t("try.others", { n: pod.nodes.feasible - pod.scores.length })));
}

function reasons(pod) {
  return Object.keys(pod.nodes.reasons).length > 0 && part(t("explain.reasons"), reasonBars(pod.nodes.reasons, pod.nodes.total));
}

function placesOf(pod) {
  const byNode = Object.entries(pod.replicasByNode ?? (pod.node ? { [pod.node]: 1 } : {}));
  return new Map(byNode.filter(([, count]) => count > 0));
}

function marksOf(places) {
  return new Map([...places].map(([node, n]) => [node, { text: `+${n}`, tone: "to", label: t("try.replica", { n }) }]));
}

function placed(app, places, map) {
  const show = () => app.open("cluster", { node: [...places.keys()][0] }, { marks: marksOf(places) });
  return part(t("try.placed"), h("p", null, [...places].slice(0, 12).map(([node, n]) => `${node}: ${number(n)}`).join(", "), places.size > 12 && " …"),
    map.element, h("p", null, h("button", { type: "button", on: { click: show } }, t("try.show"))));
}

function further(pod) {
  if (!pod.further) return null;
  const { fits, isMore, stoppedBy } = pod.further;
  return part(t("try.further"), h("p", null, t(isMore ? "try.further.more" : fits ? "try.further.some" : "try.further.none", { n: fits })),
    stoppedBy && h("p", { class: "quiet" }, t("try.further.stopped", { message: own(stoppedBy) })));
}

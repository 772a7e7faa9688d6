// The pods that kube-scheduler's preemption may evict for a pod: the lines of the check, and their nodes on a map.
import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { SmallMap } from "../cluster/small_map.js";

const MOST_NODES = 12;
const MOST_NAMES = 5;

// The verdict of an answer in words: a pod waits for room or for preemption.
export function verdictText(answer) {
  return answer.waitsFor ? t(`state.${answer.waitsFor}`) : t(`verdict.${answer.verdict}`);
}

// Returns { element, stop() }; the element is null if no pod would be evicted.
export function victimsOf(app, answer) {
  if (answer.waitsFor !== "preemption") return { element: null, stop() {} };
  const marks = marksOf(answer);
  const map = marks.size > 0 ? new SmallMap(app, new Map([...marks].slice(0, MOST_NODES)), t("victims.map")) : null;
  const show = () => app.open("cluster", { node: [...marks.keys()][0] }, { marks });
  const element = h("section", { class: "part victims" }, h("h3", null, t("victims.title")), answer.evictions.map((text) => h("p", { class: "words" }, own(text))),
    map && [map.element, h("p", null, h("button", { type: "button", on: { click: show } }, t("room.show")))]);
  return { element, stop: () => map?.stop() };
}

function marksOf(answer) {
  const sure = answer.preemption.isExact ? "" : "?";
  return new Map(Object.entries(answer.victims).map(([node, pods]) => [node, {
    text: `−${pods.length}${sure}`, tone: "from", pods: new Set(pods),
    label: t("victims.label", { n: pods.length, pods: pods.slice(0, MOST_NAMES).join(", ") + (pods.length > MOST_NAMES ? ", …" : "") }),
  }]));
}

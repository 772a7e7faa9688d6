// One decision: what was injected and by which rules, the verdict, and where the pod was bound.
import { h, fill } from "../lib/dom.js";
import { getJson } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { errorBox, loading, message } from "../lib/widgets.js";
import { part } from "../pending/details.js";
import { operationsOf, rulesOf } from "./patch.js";

export const OUTCOMES = { Patched: "good", Unchanged: "good", Bypassed: "", Denied: "bad", Error: "bad", Evicted: "" };
const TONES = { Feasible: "good", Waiting: "warn", Infeasible: "bad" };

export class DecisionDetails {
  constructor(app) {
    this.app = app;
    this.element = h("section", { class: "side", "aria-live": "off" });
    this.asked = "";
  }

  clear() {
    this.element.classList.add("empty");
    fill(this.element, message(t("admissions.choose")));
  }

  say(text) {
    this.element.classList.remove("empty");
    fill(this.element, message(text));
  }

  async show(decision) {
    this.asked = decision;
    this.element.classList.remove("empty");
    fill(this.element, loading());
    try {
      const found = await getJson("/api/admissions/decision", { decision });
      if (this.asked === decision) fill(this.element, this.detail(found));
    } catch (error) {
      if (this.asked === decision) fill(this.element, errorBox(error));
    }
  }

  detail(found) {
    const { placement } = found;
    const facts = [
      ["admissions.decision", found.decision], ["admissions.user", found.user], ["admissions.owner", found.owner], ["admissions.type", found.type],
      ["admissions.policy", found.policy], ["admissions.predictedNode", placement?.node], ["admissions.bound", found.boundTo ?? (placement?.node ? t("admissions.bound.not") : "")],
      ["admissions.duration", t("admissions.milliseconds", { n: found.durationMs })], ["admissions.replica", found.replica], ["admissions.place", found.place],
    ].filter(([, value]) => value);
    return [
      h("div", { class: "side-head" }, h("h2", null, `${found.namespace}/${found.name}`)),
      h("p", null, h("span", { class: `badge ${OUTCOMES[found.outcome] ?? ""}` }, t(`outcome.${found.outcome}`)), " ",
        placement && h("span", { class: `badge ${TONES[placement.verdict] ?? ""}` }, t(`verdict.${placement.verdict}`)), " ", found.dryRun && h("span", { class: "badge" }, t("admissions.dry"))),
      h("dl", null, facts.map(([key, value]) => [h("dt", null, t(key)), h("dd", null, value)])),
      found.error && h("p", { class: "words" }, own(found.error)),
      placement?.message && part(t("admissions.words"), h("p", { class: "words" }, own(placement.message)), placement.unmodelled.length > 0 && h("p", { class: "quiet" }, t("explain.unmodelled", { names: placement.unmodelled.join(", ") }))),
      found.warnings.length > 0 && part(t("try.warnings"), h("ul", { class: "warnings" }, found.warnings.map((text) => h("li", null, own(text))))),
      part(t("admissions.patch"), found.patch.length ? operationsOf(found.patch, found.before) : h("p", { class: "quiet" }, t("admissions.patch.none"))),
      found.rules.length > 0 && part(t("try.rules"), rulesOf(found.rules)),
    ];
  }
}

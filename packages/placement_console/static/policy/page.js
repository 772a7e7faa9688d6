// The page Policy: what is in force and where, and a candidate beside it.
import { h, fill } from "../lib/dom.js";
import { getJson, isReport, postText } from "../lib/api.js";
import { number, t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { choice, errorBox, loading, message, table } from "../lib/widgets.js";
import { Editor } from "../try/editor.js";
import { texts } from "./texts.js";

export const policyPage = {
  id: "policy",
  texts,
  mount(root, app) {
    const page = new PolicyPage(app);
    page.draw(root);
    return page;
  },
};

class PolicyPage {
  constructor(app) {
    this.app = app;
    this.kept = app.keptFor("policy");
    this.asked = 0;
  }

  draw(root) {
    this.list = h("div", { class: "content" }, loading());
    this.candidate = h("section", { class: "content" });
    fill(root, h("h1", { class: "hidden" }, t("policy.title")), h("div", { class: "policies" }, this.list, this.candidate));
    this.load();
  }

  unmount() {
    this.asked += 1;
  }

  async load() {
    try {
      const found = await getJson("/api/policies");
      fill(this.list, h("p", { class: "summary" }, t("policy.summary", { n: found.policies.length })),
        !found.hasNamespaces && h("p", { class: "quiet" }, t("policy.namespaces.unknown")),
        found.policies.map((each) => this.policy(each, found.hasNamespaces)));
      if (!isReport()) this.drawCandidate(found.hasFiles);
    } catch (error) {
      fill(this.list, errorBox(error));
    }
  }

  policy(each, hasNamespaces) {
    const facts = [each.place, each.isDefault && t("policy.default"), t("policy.mode", { mode: each.mode }), each.canaryPercent < 100 && t("policy.canary", { n: each.canaryPercent }), t("policy.check", { mode: each.placementCheck }), t("policy.types", { types: each.types.join(", ") })];
    return h("article", { class: "card result" }, h("h2", null, each.identity), h("p", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
      hasNamespaces && (each.count ? h("details", null, h("summary", null, t("policy.namespaces", { n: each.count })), h("p", { class: "quiet" }, each.namespaces.join(", "))) : h("p", { class: "quiet" }, t("policy.namespaces.none"))),
      h("details", null, h("summary", null, t("policy.text")), h("pre", { class: "code", tabindex: "0" }, each.text),
        !isReport() && h("p", null, h("button", { type: "button", on: { click: () => this.editor.set(each.text) } }, t("policy.edit")))));
  }

  drawCandidate(hasFiles) {
    const sources = [["objects", t("policy.source.objects")], ...(hasFiles ? [["audit", t("policy.source.audit")]] : [])];
    this.results = h("div", { "aria-live": "off" });
    this.editor = new Editor({
      id: "candidate", title: t("policy.candidate"), hint: t("policy.candidate.hint"), text: this.kept.text ?? "", rows: 14,
      run: t("policy.run"), onText: (text) => { this.kept.text = text; }, onRun: (text) => this.run(text), onError: (error) => fill(this.results, errorBox(error)),
      fields: [choice(t("policy.source"), sources, this.kept.source ?? "objects", (value) => { this.kept.source = value; })],
    });
    fill(this.candidate, this.editor.element, this.results);
    if (this.kept.report) this.show(this.kept.report);
  }

  async run(text) {
    const asked = (this.asked += 1);
    fill(this.results, h("p", { class: "summary" }, t("policy.working")), loading());
    try {
      const report = await postText("/api/policies/replay", text, { source: this.kept.source });
      if (asked !== this.asked) return;
      this.kept.report = report;
      this.show(report);
    } catch (error) {
      if (asked === this.asked) fill(this.results, errorBox(error), this.editor.linesOf(error));
    }
  }

  show(report) {
    const notes = [report.changed > 0 && report.refused > 0 && t("policy.refused", { n: report.refused }), report.worse > 0 && t("policy.worse", { n: report.worse }), !report.isComplete && t("policy.partial")];
    const none = report.pods ? message(t("policy.none"), t("policy.none.text", { n: report.pods })) : message(t("policy.empty"));
    fill(this.results,
      report.changed ? [h("p", { class: "summary", role: "status" }, t("policy.found", { changed: number(report.changed), n: report.pods })), this.table(report)] : none,
      notes.filter(Boolean).map((text) => h("p", null, text)),
      report.moreChanges > 0 && h("p", { class: "quiet" }, t("policy.more", { n: report.moreChanges })),
      this.leftOut(report));
  }

  table(report) {
    return table(t("policy.changes"), [
      { title: t("policy.kind"), cell: (row) => t(`policy.kind.${row.kind}`) },
      { title: t("policy.detail"), cell: (row) => own(row.detail), wide: true },
      { title: t("policy.pods"), cell: (row) => number(row.pods), number: true },
      { title: t("policy.owners"), cell: (row) => Object.entries(row.owners).map(([name, n]) => h("span", { class: "line" }, n > 1 ? `${name} (${number(n)})` : name)), wide: true },
    ], report.changes);
  }

  leftOut({ leftOut, unreadable, remarks }) {
    const lines = [...Object.entries(leftOut).map(([reason, n]) => `${number(n)}: ${own(reason)}`), unreadable > 0 && t("policy.unreadable", { n: unreadable }), ...remarks.map(own)].filter(Boolean);
    return lines.length > 0 && h("details", { class: "heading" }, h("summary", null, t("policy.leftOut")), h("ul", { class: "quiet" }, lines.map((text) => h("li", null, text))));
  }
}

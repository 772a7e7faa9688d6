// The page Admissions: filters, a timeline, the list of decisions, and the chosen one.
import { h, fill } from "../lib/dom.js";
import { getJson, hasAnswer, isReport } from "../lib/api.js";
import { language, number, t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { choice, errorBox, input, loading, message, table } from "../lib/widgets.js";
import { DecisionDetails, OUTCOMES } from "./details.js";
import { texts } from "./texts.js";
import { timelineOf } from "./timeline.js";

const KEYS = ["outcome", "type", "verdict", "namespace"];
const TYPING_MILLISECONDS = 400;

export const admissionsPage = {
  id: "admissions",
  texts,
  mount(root, app) {
    const page = new AdmissionsPage(app);
    page.draw(root);
    return page;
  },
};

export function timeText(text) {
  return new Date(text).toLocaleString(language() === "zh" ? "zh-CN" : "en-GB", { dateStyle: "short", timeStyle: "medium" });
}

class AdmissionsPage {
  constructor(app) {
    this.app = app;
    this.place = app.placeFor("admissions");
    this.asked = 0;
    this.details = new DecisionDetails(app);
  }

  draw(root) {
    this.controls = h("div", { class: "controls" });
    this.summary = h("p", { class: "summary" });
    this.body = h("div", { class: "content" }, loading());
    fill(root, h("h1", { class: "hidden" }, t("admissions.title")), this.controls, this.summary,
      h("div", { class: "with-side" }, this.body, this.details.element));
    this.load();
  }

  unmount() {
    this.asked += 1;
    clearTimeout(this.timer);
  }

  async load() {
    const asked = (this.asked += 1);
    try {
      const query = Object.fromEntries(["search", ...KEYS].map((key) => [key, this.place[key]]));
      const found = await getJson("/api/admissions", isReport() ? {} : query);
      if (asked === this.asked) this.show(found);
    } catch (error) {
      if (asked === this.asked) fill(this.body, errorBox(error));
    }
  }

  show(found) {
    if (!found.hasFiles) {
      for (const each of [this.controls, this.summary, this.details.element]) each.remove();
      fill(this.body, message(t("admissions.files"), t("admissions.files.text")));
      return;
    }
    if (!isReport()) this.drawControls(found.choices);
    fill(this.summary, t("admissions.summary", { selected: number(found.selected), n: found.total }));
    const rows = found.rows;
    fill(this.body,
      !found.isComplete && message(t("admissions.partial")),
      found.remarks.map((text) => h("p", { class: "quiet" }, own(text))),
      rows.length ? [timelineOf(found.timeline), accuracyOf(found.accuracy), this.table(t("admissions.list"), rows), h("details", { class: "heading" }, h("summary", null, t("admissions.slowest")), this.table(t("admissions.slowest"), found.slowest))]
        : message(t("admissions.none"), t("admissions.none.text")));
    if (this.place.decision) this.open(this.place.decision);
    else this.details.clear();
  }

  drawControls(choices) {
    const focused = document.activeElement?.getAttribute?.("aria-label");
    const search = input(t("admissions.search"), this.place.search ?? "", (value) => this.typed(value), { placeholder: t("admissions.search.hint"), spellcheck: "false", type: "search" });
    fill(this.controls, this.searchField ?? search,
      KEYS.map((key) => choice(t(`admissions.${key}`), this.options(key, choices[key] ?? {}), this.place[key] ?? "", (value) => this.filter(key, value))),
      h("button", { type: "button", on: { click: () => this.load() } }, t("admissions.refresh")));
    this.searchField ??= search;
    if (focused) [...this.controls.querySelectorAll("select, input")].find((each) => each.getAttribute("aria-label") === focused)?.focus();
  }

  options(key, counts) {
    const named = (value) => (key === "outcome" ? t(`outcome.${value}`) : key === "verdict" ? t(`verdict.${value}`) : value);
    const values = Object.entries(counts).filter(([value]) => value !== "");
    return [["", t("admissions.all")], ...values.map(([value, count]) => [value, `${named(value)} (${number(count)})`])];
  }

  filter(key, value) {
    this.app.put({ [key]: value }, key !== "search");
    this.load();
  }

  typed(value) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.filter("search", value), TYPING_MILLISECONDS);
  }

  table(caption, rows) {
    return table(caption, [
      { title: t("admissions.pod"), cell: (row) => [`${row.namespace}/${row.name}`, h("span", { class: "quiet line" }, timeText(row.time), row.kind !== "Pod" && ` · ${row.kind}`)] },
      { title: t("admissions.outcome"), cell: (row) => h("span", { class: `badge ${OUTCOMES[row.outcome] ?? ""}` }, t(`outcome.${row.outcome}`)) },
      { title: t("admissions.type"), cell: (row) => row.type ?? "" },
      { title: t("admissions.verdict"), cell: (row) => [row.verdict && t(`verdict.${row.verdict}`), row.node && h("span", { class: "quiet" }, ` ${row.node}`)] },
      { title: t("admissions.reason"), cell: (row) => row.note && h("span", { class: "row-why" }, own(row.note)), wide: true },
      { title: t("admissions.duration"), cell: (row) => t("admissions.milliseconds", { n: number(row.durationMs) }), number: true },
    ], rows, { most: 50, stacks: true, onRow: (row, element) => this.choose(row, element), isChosen: (row) => row.decision === this.place.decision });
  }

  choose(row, element) {
    this.app.put({ decision: row.decision });
    for (const each of this.body.querySelectorAll("tr.chosen")) each.classList.remove("chosen");
    element.classList.add("chosen");
    this.open(row.decision);
    if (window.innerWidth <= 1000) this.details.element.scrollIntoView({ block: "start" });
  }

  open(decision) {
    if (hasAnswer("/api/admissions/decision", { decision })) this.details.show(decision);
    else this.details.say(t("admissions.notReported"));
  }
}

function accuracyOf({ predicted = 0, elsewhere = 0 }) {
  const all = predicted + elsewhere;
  if (!all) return null;
  return h("p", { class: "accuracy" }, h("strong", null, t("admissions.accuracy")), `: ${number(predicted)} ${t("admissions.predicted")} (${Math.round((100 * predicted) / all)} %), ${number(elsewhere)} ${t("admissions.elsewhere")}`);
}

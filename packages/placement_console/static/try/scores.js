// The scores of nodes as stacked bars: each plugin has a letter and a colour, and the table has the numbers.
import { h } from "../lib/dom.js";
import { number, t } from "../lib/i18n.js";

const COLOURS = 8;
const FEW = 8;

export function scoreTable(scores) {
  const plugins = [...new Set(scores.flatMap((row) => Object.keys(row)))].filter((name) => name !== "node" && name !== "total" && scores.some((row) => row[name] > 0));
  const most = Math.max(1, ...scores.map((row) => row.total));
  const body = h("tbody", null, scores.slice(0, FEW).map((row) => rowOf(row, plugins, most)));
  const rest = scores.slice(FEW);
  const more = rest.length > 0 && h("button", { type: "button", on: { click: () => {
    body.append(...rest.map((row) => rowOf(row, plugins, most)));
    more.remove();
  } } }, t("table.more", { n: rest.length, rest: rest.length }));
  return [
    h("ul", { class: "score-legend", "aria-label": t("try.legend") }, plugins.map((plugin, index) => h("li", null, h("span", { class: `score-part c${index % COLOURS}` }, letter(index)), plugin))),
    h("div", { class: "table-box", role: "region", tabindex: "0", "aria-label": t("try.scores.caption") },
      h("table", { class: "scores" }, h("caption", { class: "hidden" }, t("try.scores.caption")),
        h("thead", null, h("tr", null, [t("try.node"), t("try.total"), ""].map((title) => h("th", { scope: "col" }, title)))), body)),
    more,
  ];
}

function rowOf(row, plugins, most) {
  const parts = plugins.map((plugin, index) => ({ plugin, index, score: row[plugin] ?? 0 })).filter(({ score }) => score > 0);
  const text = parts.map(({ plugin, score }) => t("try.score", { plugin, n: score })).join(", ");
  return h("tr", null, h("th", { scope: "row" }, row.node), h("td", { class: "number" }, number(row.total)),
    h("td", { class: "score-cell" }, h("span", { class: "score-bar", role: "img", "aria-label": text, title: text },
      parts.map(({ index, score }) => h("span", { class: `score-part c${index % COLOURS}`, style: { width: `${((100 * score) / most).toFixed(2)}%` } }, (100 * score) / most > 4 ? letter(index) : "")))));
}

function letter(index) {
  return String.fromCharCode(97 + (index % 26));
}

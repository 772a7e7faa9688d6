// Parts that pages share: messages, tables, choices, tabs of a page.
import { h, fill } from "./dom.js";
import { t } from "./i18n.js";

// A message in place of content: { title, text, tone: "error" | "quiet" }.
export function message(title, text = "", tone = "quiet") {
  return h("div", { class: `message ${tone}`, role: tone === "error" ? "alert" : "status" }, h("strong", null, title), text && h("p", null, text));
}

// The errors of a request, each on a line, as the command line prints them.
export function errorBox(error) {
  const texts = error.messages ?? [String(error.message ?? error)];
  return h("div", { class: "message error", role: "alert" }, h("strong", null, t("error.title")), texts.map((text) => h("pre", null, text)));
}

export function loading() {
  return h("div", { class: "message quiet loading", role: "status" }, t("loading"));
}

// A labelled choice. `options` are [value, text] pairs; `choose(value)` is called with each choice.
export function choice(label, options, chosen, choose, extra = {}) {
  const select = h("select", { "aria-label": label, on: { change: (event) => choose(event.target.value) }, ...extra });
  for (const [value, text] of options) select.append(h("option", { value, selected: value === chosen }, text));
  return h("label", { class: "field" }, h("span", null, label), select);
}

// A labelled input that calls `type(value)` while the user types.
export function input(label, value, type, extra = {}) {
  return h("label", { class: "field" }, h("span", null, label), h("input", { "aria-label": label, value, on: { input: (event) => type(event.target.value) }, ...extra }));
}

// Buttons; one of them is pressed.
export function switcher(label, options, chosen, choose) {
  const group = h("div", { class: "switcher", role: "group", "aria-label": label });
  const draw = (current) => fill(group, options.map(([value, text]) => h("button", {
    type: "button",
    "aria-pressed": String(value === current),
    on: { click: () => { draw(value); choose(value); group.querySelector("[aria-pressed=true]").focus(); } },
  }, text)));
  draw(chosen);
  return group;
}

// A table with pages of `most` rows. `columns` are { title, cell(row) -> children, number, wide }.
export function table(caption, columns, rows, { most = 100, onRow = null, isChosen = () => false } = {}) {
  const body = h("tbody");
  const more = h("div", { class: "more" });
  let shown = 0;
  const add = () => {
    for (const row of rows.slice(shown, shown + most)) body.append(tableRow(columns, row, onRow, isChosen));
    shown = Math.min(rows.length, shown + most);
    fill(more, shown < rows.length && h("button", { type: "button", on: { click: add } }, t("table.more", { n: Math.min(most, rows.length - shown), rest: rows.length - shown })));
  };
  add();
  const head = h("tr", null, columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : "" }, column.title)));
  return h("div", { class: "table-box", role: "region", tabindex: "0", "aria-label": caption },
    h("table", null, h("caption", { class: "hidden" }, caption), h("thead", null, head), body), more);
}

function tableRow(columns, row, onRow, isChosen) {
  const cells = columns.map((column, index) => {
    const content = column.cell(row);
    const inner = index === 0 && onRow ? h("button", { type: "button", class: "link", on: { click: () => onRow(row) } }, content) : content;
    return h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: column.number ? "number" : column.wide ? "wide" : "" }, inner);
  });
  return h("tr", { class: isChosen(row) ? "chosen" : "" }, cells);
}

// A bar with its share as text.
export function bar(label, share, text) {
  const width = `${Math.min(100, Math.max(0, share * 100)).toFixed(1)}%`;
  return h("div", { class: "bar" }, h("span", { class: "bar-label" }, label), h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width } })), h("span", { class: "bar-text" }, text));
}

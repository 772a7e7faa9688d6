// Parts that pages share: messages, tables, choices, tabs of a page.
import { h, fill } from "./dom.js";
import { t } from "./i18n.js";
import { own } from "./own.js";

const FOCUSABLE = "button, summary, [tabindex]";

// A message in place of content: { title, text, tone: "error" | "quiet" }.
export function message(title, text = "", tone = "quiet") {
  return h("div", { class: `message ${tone}`, role: tone === "error" ? "alert" : "status" }, h("strong", null, title), text && h("p", null, text));
}

// The errors of a request, each on a line, as the command line prints them.
export function errorBox(error) {
  const texts = error.messages ?? [String(error.message ?? error)];
  return h("div", { class: "message error", role: "alert" }, h("strong", null, t("error.title")), texts.map((text) => h("pre", null, own(text))));
}

export function loading() {
  return h("div", { class: "message quiet loading", role: "status" }, t("loading"));
}

// A labelled choice. `options` are [value, text] pairs; `choose(value)` is called with each choice.
export function choice(label, options, chosen, choose, extra = {}) {
  const select = h("select", { "aria-label": label, on: { change: (event) => choose(event.target.value) }, ...extra });
  // A filter of the address that nothing has is shown, too.
  const isKnown = !chosen || options.some(([value]) => value === chosen);
  for (const [value, text] of isKnown ? options : [...options, [chosen, chosen]]) select.append(h("option", { value, selected: value === chosen }, text));
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

// A table with pages of `most` rows. `columns` are { title, cell(row) -> children, number, wide }. `onRow(row, element)` is
// called for a press anywhere in a row. On a phone, the cells of a row of a table that `stacks` are below each other.
export function table(caption, columns, rows, { most = 100, onRow = null, isChosen = () => false, stacks = false } = {}) {
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
  return h("div", { class: stacks ? "table-box stacks" : "table-box", role: "region", tabindex: "0", "aria-label": caption },
    h("table", null, h("caption", { class: "hidden" }, caption), h("thead", null, head), body), more);
}

function tableRow(columns, row, onRow, isChosen) {
  const cells = columns.map((column, index) => {
    const content = column.cell(row);
    const inner = index === 0 && onRow ? h("button", { type: "button", class: "link" }, content) : content;
    return h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: column.number ? "number" : column.wide ? "wide" : "" }, inner);
  });
  // The button is for the keyboard; its press reaches the row.
  const element = h("tr", { class: `${onRow ? "opens" : ""} ${isChosen(row) ? "chosen" : ""}`, on: onRow ? { click: () => onRow(row, element) } : {} }, cells);
  return element;
}

// Fills `element` again while it is read: rows that were added to its tables, and what is open, scrolled and focused, stay.
export function refill(element, ...children) {
  const all = (selector) => [...element.querySelectorAll(selector)];
  const tables = all(".table-box").map((box) => [box.querySelectorAll("tbody tr").length, box.scrollLeft]);
  const open = all("details").map((each) => each.open);
  const at = all(FOCUSABLE).indexOf(document.activeElement);
  const text = at >= 0 ? document.activeElement.textContent : "";
  fill(element, children);
  all(".table-box").forEach((box, index) => {
    const [rows, left] = tables[index] ?? [0, 0];
    const shown = () => box.querySelectorAll("tbody tr").length;
    for (let more; shown() < rows && (more = box.querySelector(".more button"));) more.click();
    box.scrollLeft = left;
  });
  all("details").forEach((each, index) => { each.open = open[index] ?? each.open; });
  const found = at >= 0 && all(FOCUSABLE);
  // Rows can have equal texts, so the place decides first.
  if (found) (found[at]?.textContent === text ? found[at] : found.find((each) => each.textContent === text))?.focus({ preventScroll: true });
}

// A bar with its share as text.
export function bar(label, share, text) {
  return h("div", { class: "bar" }, h("span", { class: "bar-label" }, label), trackOf(share), h("span", { class: "bar-text" }, text));
}

// The bar of a share. One that is not zero has at least three pixels.
export function trackOf(share) {
  const style = { width: `${Math.min(100, share * 100).toFixed(1)}%`, "min-width": share > 0 ? "3px" : "0" };
  return h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style }));
}

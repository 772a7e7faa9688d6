// A text that a user pastes, drops or opens, with a button that runs it; also by Ctrl+Enter.
import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { bytes } from "../lib/format.js";

const MOST_BYTES = 1024 * 1024;
const MOST_LINES = 10;

export class Editor {
  // `fields` and `buttons` are beside the button `run`; `onText(text)` is called after each change, `onRun(text)` to run.
  constructor({ id, title, hint, text, rows, run, onText, onRun, onError, fields = [], buttons = [] }) {
    this.options = { onText, onRun, onError };
    this.area = h("textarea", {
      id, rows, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-hint`,
      on: { input: () => onText(this.area.value), keydown: (event) => this.key(event) },
    });
    this.area.value = text;
    const file = h("input", { type: "file", class: "hidden", accept: ".yaml,.yml,.json", tabindex: "-1", "aria-hidden": "true", on: { change: () => this.read(file.files[0]) } });
    this.element = h("form", { class: "card try-form", on: { submit: (event) => { event.preventDefault(); this.run(); }, dragover: (event) => event.preventDefault(), drop: (event) => this.drop(event) } },
      h("label", { for: id }, h("h2", null, title)), h("p", { class: "quiet", id: `${id}-hint` }, hint), this.area,
      h("div", { class: "controls" }, fields, h("button", { type: "submit", class: "primary" }, run),
        h("button", { type: "button", on: { click: () => file.click() } }, t("try.open")), file, buttons,
        h("button", { type: "button", on: { click: () => this.set("") } }, t("try.clear"))));
  }

  run() {
    this.options.onRun(this.area.value);
  }

  set(text) {
    this.area.value = text;
    this.options.onText(text);
    this.area.focus();
    this.area.setSelectionRange(0, 0);
    this.area.scrollTop = 0;
  }

  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run();
    }
  }

  drop(event) {
    const file = event.dataTransfer?.files?.[0];
    if (!file) return;
    event.preventDefault();
    this.read(file);
  }

  async read(file) {
    if (!file) return;
    if (file.size > MOST_BYTES) this.options.onError(new Error(t("try.large", { size: bytes(MOST_BYTES) })));
    else this.set(await file.text());
  }

  // Buttons that go to the lines that the errors name.
  linesOf(error) {
    const lines = new Set((error.messages ?? []).flatMap((text) => [...text.matchAll(/(?:\bline |^\w+:)(\d+)/g)].map((found) => Number(found[1]))));
    return h("p", { class: "controls" }, [...lines].slice(0, MOST_LINES).map((n) => h("button", { type: "button", on: { click: () => this.goTo(n) } }, t("try.line", { n }))));
  }

  goTo(line) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    this.area.scrollTop = (this.area.scrollHeight * (line - 4)) / Math.max(1, lines.length);
  }
}

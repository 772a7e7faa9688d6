// The page Try: a manifest on the left, what the webhook and the scheduler make of it on the right.
import { h, fill } from "../lib/dom.js";
import { postText } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { bytes } from "../lib/format.js";
import { errorBox, input, loading, message } from "../lib/widgets.js";
import { EXAMPLE } from "./example.js";
import { resultOf } from "./result.js";
import { texts } from "./texts.js";

const MOST_BYTES = 1024 * 1024;

export const tryPage = {
  id: "try",
  texts,
  needsServer: true,
  mount(root, app) {
    const page = new TryPage(app);
    page.draw(root);
    return page;
  },
};

class TryPage {
  constructor(app) {
    this.app = app;
    this.kept = app.keptFor("try");
    this.asked = 0;
  }

  draw(root) {
    this.editor = h("textarea", {
      id: "manifest", rows: 26, spellcheck: "false", autocomplete: "off", "aria-describedby": "manifest-hint",
      on: { input: () => { this.kept.text = this.editor.value; }, keydown: (event) => this.key(event) },
    });
    this.editor.value = this.kept.text ?? "";
    const file = h("input", { type: "file", class: "hidden", accept: ".yaml,.yml,.json", tabindex: "-1", "aria-hidden": "true", on: { change: () => this.read(file.files[0]) } });
    const form = h("form", { class: "card try-form", on: { submit: (event) => { event.preventDefault(); this.run(); }, dragover: (event) => event.preventDefault(), drop: (event) => this.drop(event) } },
      h("label", { for: "manifest" }, h("h2", null, t("try.manifest"))),
      h("p", { class: "quiet", id: "manifest-hint" }, t("try.hint")),
      this.editor,
      h("div", { class: "controls" },
        input(t("try.namespace"), this.kept.namespace ?? "", (value) => { this.kept.namespace = value; }, { placeholder: t("try.namespace.hint"), spellcheck: "false" }),
        h("button", { type: "submit", class: "primary" }, t("try.run")),
        h("button", { type: "button", on: { click: () => file.click() } }, t("try.open")), file,
        h("button", { type: "button", on: { click: () => this.set(EXAMPLE) } }, t("try.example")),
        h("button", { type: "button", on: { click: () => this.set("") } }, t("try.clear"))));
    this.results = h("section", { class: "content", "aria-live": "off" });
    fill(root, h("h1", { class: "hidden" }, t("try.title")), h("div", { class: "try" }, form, this.results));
    this.show();
  }

  unmount() {
    this.asked += 1;
    this.stop();
  }

  stop() {
    for (const each of this.shown ?? []) each.stop();
    this.shown = [];
  }

  set(text) {
    this.editor.value = this.kept.text = text;
    this.editor.focus();
    this.editor.setSelectionRange(0, 0);
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
    if (file.size > MOST_BYTES) fill(this.results, errorBox(new Error(t("try.large", { size: bytes(MOST_BYTES) }))));
    else this.set(await file.text());
  }

  async run() {
    const asked = (this.asked += 1);
    this.stop();
    fill(this.results, h("p", { class: "summary" }, t("try.working")), loading());
    try {
      const answer = await postText("/api/try", this.editor.value, { namespace: this.kept.namespace });
      if (asked !== this.asked) return;
      this.kept.answer = answer;
      this.show();
      this.app.announce(answer.pods.map((pod) => `${pod.title}: ${t(`verdict.${pod.verdict}`)}`).join("; "));
    } catch (error) {
      if (asked === this.asked) fill(this.results, errorBox(error), this.linesOf(error));
    }
  }

  show() {
    const answer = this.kept.answer;
    if (!answer) {
      fill(this.results, h("p", { class: "summary" }), message(t("try.first"), t("try.first.text")));
      return;
    }
    this.shown = answer.pods.map((pod) => resultOf(this.app, pod));
    fill(this.results, h("p", { class: "summary" }, t("try.summary", { n: answer.pods.length })),
      this.shown.map((each) => each.element),
      answer.remarks.length > 0 && h("details", { class: "card" }, h("summary", null, t("try.remarks")), answer.remarks.map((text) => h("p", { class: "quiet" }, text))));
  }

  // Buttons that go to the lines that the errors name.
  linesOf(error) {
    const lines = new Set((error.messages ?? []).flatMap((text) => [...text.matchAll(/\bline (\d+)/g)].map((found) => Number(found[1]))));
    return h("p", { class: "controls" }, [...lines].slice(0, 10).map((n) => h("button", { type: "button", on: { click: () => this.goTo(n) } }, t("try.line", { n }))));
  }

  goTo(line) {
    const lines = this.editor.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.editor.focus();
    this.editor.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    this.editor.scrollTop = (this.editor.scrollHeight * (line - 4)) / Math.max(1, lines.length);
  }
}

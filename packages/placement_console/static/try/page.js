// The page Try: a manifest on the left, what the webhook and the scheduler make of it on the right.
import { h, fill } from "../lib/dom.js";
import { postText } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { errorBox, input, loading, message } from "../lib/widgets.js";
import { Editor } from "./editor.js";
import { EXAMPLE } from "./example.js";
import { verdictText } from "../pending/victims.js";
import { overviewOf, resultOf } from "./result.js";
import { texts } from "./texts.js";

// More templates are an overview first, and one of them in detail.
const MOST_AT_ONCE = 10;

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
    this.editor = new Editor({
      id: "manifest", title: t("try.manifest"), hint: t("try.hint"), text: this.kept.text ?? "", rows: 26, run: t("try.run"),
      onText: (text) => { this.kept.text = text; }, onRun: (text) => this.run(text), onError: (error) => fill(this.results, errorBox(error)),
      fields: [input(t("try.namespace"), this.kept.namespace ?? "", (value) => { this.kept.namespace = value; }, { placeholder: t("try.namespace.hint"), spellcheck: "false" })],
      buttons: [h("button", { type: "button", on: { click: () => this.editor.set(EXAMPLE) } }, t("try.example"))],
    });
    this.results = h("section", { class: "content", "aria-live": "off" });
    fill(root, h("h1", { class: "hidden" }, t("try.title")), h("div", { class: "try" }, this.editor.element, this.results));
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

  async run(text) {
    const asked = (this.asked += 1);
    this.stop();
    fill(this.results, h("p", { class: "summary" }, t("try.working")), loading());
    try {
      const answer = await postText("/api/try", text, { namespace: this.kept.namespace });
      if (asked !== this.asked) return;
      this.kept.answer = answer;
      this.show();
      this.app.announce(answer.pods.map((pod) => `${pod.title}: ${verdictText(pod)}`).join("; "));
    } catch (error) {
      if (asked === this.asked) fill(this.results, errorBox(error), this.editor.linesOf(error));
    }
  }

  show() {
    const answer = this.kept.answer;
    if (!answer) {
      fill(this.results, h("p", { class: "summary" }), message(t("try.first"), t("try.first.text")));
      return;
    }
    const isLong = answer.pods.length > MOST_AT_ONCE;
    this.one = h("div");
    if (!isLong) this.shown = answer.pods.map((pod) => resultOf(this.app, pod));
    fill(this.results, h("p", { class: "summary" }, t("try.summary", { n: answer.pods.length })),
      isLong ? [overviewOf(answer.pods, (pod) => this.showOne(pod)), this.one] : this.shown.map((each) => each.element),
      answer.remarks.length > 0 && h("details", { class: "card" }, h("summary", null, t("try.remarks")), answer.remarks.map((text) => h("p", { class: "quiet" }, own(text)))));
  }
  // Shows one template of the overview.
  showOne(pod) {
    this.stop();
    this.shown = [resultOf(this.app, pod)];
    fill(this.one, this.shown[0].element);
    this.one.scrollIntoView({ block: "start" });
  }
}

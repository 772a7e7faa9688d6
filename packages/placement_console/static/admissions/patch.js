// A patch as a diff, and the rules that made it.
import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { own } from "../lib/own.js";

const TONES = { "+": "good", "-": "bad", "@": "quiet" };

// Lines of a unified diff; their first character has the sign, so that colour is not the only one.
export function diffOf(lines) {
  return h("pre", { class: "code diff", tabindex: "0" }, lines.map((line) => h("span", { class: `line ${/^(---|\+\+\+) /.test(line) ? "quiet" : TONES[line[0]] ?? ""}` }, line)));
}

export function rulesOf(rules) {
  return h("ul", null, rules.map((rule) => h("li", null, h("strong", null, rule.name), ": ", rule.skipped ? t("try.skipped", { reason: own(rule.skipped) }) : (rule.edits ?? []).map(own).join(", "))));
}

// RFC 6902 operations, one a line; `before` has the values that they replace, by path.
export function operationsOf(operations, before) {
  const lines = operations.flatMap(({ op, path, value }) => [
    ...(path in before ? [`- ${path}: ${JSON.stringify(before[path])}`] : []),
    ...(op === "remove" ? [] : [`+ ${path}: ${JSON.stringify(value)}`]),
  ]);
  return h("pre", { class: "code diff wrapped", tabindex: "0" }, lines.map((line) => h("span", { class: `line ${TONES[line[0]]}` }, line)));
}

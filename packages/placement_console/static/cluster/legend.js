// The legend: a button for each group of pods, which shows only its cards while it is pressed, and the signs.
import { h } from "../lib/dom.js";
import { number, t } from "../lib/i18n.js";
import { OTHER, colourOf, inkOn, letterOf } from "./colours.js";

export function nameOf(by, name) {
  if (name === null) return t("legend.other");
  return name || (by === "namespace" ? t("none") : t(`${by}.none`));
}

export function swatch(index) {
  const colour = colourOf(index);
  return h("span", { class: "swatch", "aria-hidden": "true", style: { background: colour, color: inkOn(colour) } }, letterOf(index));
}

export function legend(palette, highlight, nodes) {
  const buttons = palette.legend().map(([index, name, cards]) => h("button", {
    type: "button", class: "chip", "aria-pressed": "false", title: t("legend.highlight"),
    on: { click: (event) => press(event.currentTarget, index, highlight) },
  }, swatch(index), h("span", { class: "chip-name" }, nameOf(palette.by, index === OTHER ? null : name)), h("span", { class: "count" }, number(cards))));
  return [...buttons, h("span", { class: "signs" }, signs(nodes))];
}

function press(button, index, highlight) {
  const isOn = button.getAttribute("aria-pressed") !== "true";
  for (const each of button.parentNode.querySelectorAll(".chip")) each.setAttribute("aria-pressed", String(each === button && isOn));
  highlight(isOn ? index : -1);
}

// The signs that the nodes on the map have.
function signs(nodes) {
  const has = (test) => nodes.some(test);
  const kinds = new Set(nodes.flatMap((node) => node.cards.map((card) => card.kind)));
  return [
    sign("free", "legend.free"),
    kinds.has("mig") && sign("mig", "legend.mig"),
    kinds.has("shared") && sign("shared", "legend.shared"),
    has((node) => node.cordoned) && sign("cordoned", "legend.cordoned"),
    has((node) => !node.ready) && sign("not-ready", "legend.notReady"),
    has((node) => node.taints.length) && sign("taints", "legend.taints"),
    sign("cpu", "legend.cpu"),
    sign("memory", "legend.memory"),
  ];
}

function sign(name, key) {
  return h("span", { class: "sign" }, h("span", { class: `sign-mark ${name}`, "aria-hidden": "true" }), t(key));
}

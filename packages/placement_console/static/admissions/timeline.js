// The number of admissions over time, as bars with a part for each outcome. Each outcome has a colour and lines across it.
import { h } from "../lib/dom.js";
import { language, number, t } from "../lib/i18n.js";
import { duration } from "../lib/format.js";

const ORDER = ["Patched", "Unchanged", "Bypassed", "Denied", "Error", "Evicted"];
// The lines across the part of an outcome, as x1, y1, x2, y2 in shares of its width and height.
const LINES = {
  Unchanged: [[0, 0.33, 1, 0.33], [0, 0.67, 1, 0.67]],
  Bypassed: [[0.5, 0, 0.5, 1]],
  Denied: [[0, 1, 1, 0]],
  Error: [[0, 0, 1, 1], [0, 1, 1, 0]],
  Evicted: [[0, 0.5, 1, 0.5]],
};
const HEIGHT = 72;
// In the unit of the height: one pixel is less.
const LEAST = 3;

export function timelineOf({ start, seconds, buckets }) {
  const most = Math.max(1, ...buckets.map((bucket) => Object.values(bucket).reduce((sum, n) => sum + n, 0)));
  const width = 1000 / Math.max(1, buckets.length);
  const bars = buckets.flatMap((bucket, index) => {
    let y = HEIGHT;
    return ORDER.filter((outcome) => bucket[outcome]).map((outcome) => {
      const height = Math.max(LEAST, ((HEIGHT - ORDER.length * LEAST) * bucket[outcome]) / most);
      y -= height;
      return part(outcome, index * width, y, Math.max(1, width - 1.5), height, `${timeOf(start + index * seconds)}: ${named(outcome, bucket[outcome])}`);
    });
  });
  const totals = ORDER.map((outcome) => [outcome, buckets.reduce((sum, bucket) => sum + (bucket[outcome] ?? 0), 0)]).filter(([, n]) => n > 0);
  const text = t("admissions.from", { from: timeOf(start), to: timeOf(start + seconds * buckets.length), age: duration(seconds) });
  const label = `${text}. ${totals.map(([outcome, n]) => named(outcome, n)).join(", ")}`;
  return h("figure", { class: "timeline" },
    h("svg", { viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, bars),
    h("figcaption", null, h("span", { class: "quiet" }, text),
      h("span", { class: "outcomes" }, totals.map(([outcome, n]) => h("span", { class: "sign" }, h("svg", { class: "swatch-small", viewBox: "0 0 12 12", "aria-hidden": "true" }, part(outcome, 0, 0, 12, 12)), `${t(`outcome.${outcome}`)} ${number(n)}`)))));
}

function part(outcome, x, y, width, height, title) {
  const lines = (LINES[outcome] ?? []).map(([x1, y1, x2, y2]) => h("line", { x1: (x + x1 * width).toFixed(2), y1: (y + y1 * height).toFixed(2), x2: (x + x2 * width).toFixed(2), y2: (y + y2 * height).toFixed(2) }));
  return h("g", { class: `outcome ${outcome}` }, title && h("title", null, title), h("rect", { x: x.toFixed(2), y: y.toFixed(2), width: width.toFixed(2), height: height.toFixed(2) }), lines);
}

function named(outcome, count) {
  return `${t(`outcome.${outcome}`)}: ${number(count)}`;
}

function timeOf(seconds) {
  return new Date(seconds * 1000).toLocaleString(language() === "zh" ? "zh-CN" : "en-GB", { dateStyle: "short", timeStyle: "short" });
}

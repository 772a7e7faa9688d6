// The number of admissions over time, as bars with a part for each outcome.
import { h } from "../lib/dom.js";
import { language, number, t } from "../lib/i18n.js";
import { duration } from "../lib/format.js";

const ORDER = ["Patched", "Unchanged", "Bypassed", "Denied", "Error", "Evicted"];
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
      return h("rect", { x: (index * width).toFixed(2), y: y.toFixed(2), width: Math.max(1, width - 1.5).toFixed(2), height: height.toFixed(2), class: `outcome ${outcome}` });
    });
  });
  const totals = ORDER.map((outcome) => [outcome, buckets.reduce((sum, bucket) => sum + (bucket[outcome] ?? 0), 0)]).filter(([, n]) => n > 0);
  const text = t("admissions.from", { from: timeOf(start), to: timeOf(start + seconds * buckets.length), age: duration(seconds) });
  const label = `${text}. ${totals.map(([outcome, n]) => `${t(`outcome.${outcome}`)}: ${number(n)}`).join(", ")}`;
  return h("figure", { class: "timeline" },
    h("svg", { viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, bars),
    h("figcaption", null, h("span", { class: "quiet" }, text),
      h("span", { class: "outcomes" }, totals.map(([outcome, n]) => h("span", { class: "sign" }, h("span", { class: `outcome swatch-small ${outcome}` }), `${t(`outcome.${outcome}`)} ${number(n)}`)))));
}

function timeOf(seconds) {
  return new Date(seconds * 1000).toLocaleString(language() === "zh" ? "zh-CN" : "en-GB", { dateStyle: "short", timeStyle: "short" });
}

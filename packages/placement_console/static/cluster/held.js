// Cards that are held and not used, as the server sees it. A pod that is being deleted is held once it should have ended.
import { h } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { number, t } from "../lib/i18n.js";
import { table } from "../lib/widgets.js";

// `used` is a row of a card: namespace, name, number, owner, type, and of few pods also the class and the time in seconds
// after which the pod should have ended, or 0. `downFrom` is when the node counts as down. Returns the class, or "".
function classOf(used, downFrom, now) {
  if (used[6] && used[6] * 1000 < now) return "terminating";
  return used[5] === "node-down" && now < downFrom * 1000 ? "" : used[5] ?? "";
}

// The rows of the pods of a node that hold cards at `now`, in milliseconds.
export function heldOn(node, now) {
  return node.cards.flatMap((card) => card.used.map((used) => ({ node: node.name, resource: card.resource, pod: `${used[0]}/${used[1]}`, cards: used[2], owner: used[3], class: classOf(used, node.downFrom, now), end: used[6] ?? 0 })))
    .filter((row) => row.class);
}

export function heldCards(node, now) {
  return heldOn(node, now).reduce((sum, row) => sum + row.cards, 0);
}

// A heading and the table of held cards; `open(node)` shows a node. Empty without any.
export function heldList(nodes, now, open) {
  const rows = nodes.flatMap((node) => heldOn(node, now)).sort((a, b) => b.cards - a.cards);
  if (!rows.length) return [];
  const cards = rows.reduce((sum, row) => sum + row.cards, 0);
  return [
    h("h2", null, t("held.title", { n: cards })),
    h("p", { class: "quiet" }, t("held.help")),
    table(t("held.title", { n: cards }), [
      { title: t("column.node"), cell: (row) => row.node },
      { title: t("column.cards"), number: true, cell: (row) => number(row.cards) },
      { title: t("held.resource"), cell: (row) => row.resource },
      { title: t("column.pod"), wide: true, cell: (row) => row.pod },
      { title: t("column.owner"), wide: true, cell: (row) => row.owner },
      { title: t("held.why"), cell: (row) => whyOf(row, now) },
    ], rows, { onRow: (row) => open(row.node) }),
  ];
}

function whyOf(row, now) {
  return row.class === "terminating" ? t("held.since", { age: duration(now / 1000 - row.end) }) : t(`held.${row.class}`);
}

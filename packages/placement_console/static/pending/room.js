// What would make room for a pod: the fewest moves, drawn on a map of their nodes, and the commands.
import { h, fill } from "../lib/dom.js";
import { getJson, hasAnswer, isReport } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { own } from "../lib/own.js";
import { errorBox } from "../lib/widgets.js";
import { SmallMap } from "../cluster/small_map.js";

export class MakeRoom {
  constructor(app, query) {
    this.app = app;
    this.query = query;
    this.body = h("div", null);
    this.element = h("section", { class: "part" }, h("h3", null, t("room.title")), this.body);
    this.element.hidden = !hasAnswer("/api/pending/room", query);
    if (isReport()) {
      if (!this.element.hidden) this.ask();
    } else {
      fill(this.body, h("button", { type: "button", class: "primary", on: { click: () => this.ask() } }, t("room.ask")));
    }
  }

  leave() {
    this.map?.stop();
    this.isOver = true;
  }

  async ask() {
    fill(this.body, h("p", { class: "quiet loading", role: "status" }, t("room.working")));
    try {
      const room = await getJson("/api/pending/room", this.query);
      if (!this.isOver) fill(this.body, this.result(room));
    } catch (error) {
      if (!this.isOver) fill(this.body, errorBox(error));
    }
  }

  result(room) {
    if (room.verdict !== "Moves") {
      const tried = room.tried ?? {};
      const key = room.verdict === "None" && !tried.sets ? "room.None.none" : `room.${room.verdict}`;
      const kept = Object.entries(tried.notMoved ?? {}).map(([reason, count]) => h("li", null, `${count}: ${own(reason)}`));
      return [h("p", { role: "status" }, t(key, { node: room.node ?? "", moves: tried.moves ?? 0, sets: tried.sets ?? 0, message: own(room.message ?? "") })), kept.length > 0 && h("ul", { class: "quiet" }, kept)];
    }
    const marks = marksOf(room);
    this.map = new SmallMap(this.app, marks, t("room.map"));
    const steps = room.moves.map((move) => h("li", null, t("room.move", { pod: move.pod, controller: move.controller, to: move.to }),
      [move.anyOfThemDoes && move.nodesThatFit > 1 && t("room.any", { n: move.nodesThatFit }), move.losesWork && t("room.work"), move.losesLocalData && t("room.data")].filter(Boolean).map((text) => h("span", { class: "quiet" }, ` · ${text}`))));
    return [
      h("p", { role: "status" }, h("strong", null, t("room.Moves", { n: room.moves.length, node: room.node }))),
      h("ol", null, steps),
      this.map.element,
      h("p", null, h("button", { type: "button", on: { click: () => this.app.open("cluster", { node: room.boundTo ?? room.node }, { marks }) } }, t("room.show"))),
      h("h4", null, t("room.commands")),
      commands(room.commands),
      h("p", { class: "quiet" }, t("room.wait"), room.budgetsKnown ? "" : ` ${t("room.budgets")}`),
    ];
  }
}

// The marks of the map: how many pods leave and come, and where the waiting pod goes.
function marksOf(room) {
  const leaving = room.moves.length;
  const marks = new Map([[room.node, { text: `−${leaving} +1`, tone: "from", label: `${t("room.from", { n: leaving })}; ${t("room.here")}` }]]);
  const coming = new Map();
  for (const move of room.moves) coming.set(move.to, (coming.get(move.to) ?? 0) + 1);
  for (const [node, n] of coming) marks.set(node, { text: `+${n}`, tone: "to", label: t("room.to", { n }) });
  return marks;
}

function commands(lines) {
  const text = lines.join("\n");
  const button = h("button", { type: "button", class: "copy", on: { click: async () => {
    await navigator.clipboard.writeText(text);
    fill(button, t("room.copied"));
  } } }, t("room.copy"));
  return h("div", { class: "commands" }, h("pre", { tabindex: "0" }, text), navigator.clipboard && button);
}

// A map of some nodes with marks, as a part of another page.
import { h } from "../lib/dom.js";
import { Palette } from "./colours.js";
import { grouped } from "./groups.js";
import { NodeMap, groupTitle } from "./map.js";

export class SmallMap {
  // `marks` is a map from the name of a node to its mark; the map has these nodes, once the store has them.
  constructor(app, marks, label) {
    this.store = app.store;
    this.palette = new Palette();
    this.map = new NodeMap({
      palette: this.palette, density: () => "large", choose: (name) => app.open("cluster", { node: name }, { marks }),
      announce: (text) => app.announce(text), header: (group) => groupTitle(group),
    });
    this.draw(marks);
    this.forget = this.store.follow((changed) => changed ?? this.draw(marks));
    this.map.setMarks(marks);
    this.map.start();
    this.element = h("div", { class: "small-map", role: "group", "aria-label": label }, this.map.element);
  }

  draw(marks) {
    const nodes = [...this.store.nodes.values()];
    this.palette.update("namespace", nodes);
    this.map.setGroups(grouped(nodes.filter((node) => marks.has(node.name)), this.store.groups));
  }

  stop() {
    this.forget();
    this.map.stop();
  }
}

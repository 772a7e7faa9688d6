// A map of some nodes with marks, as a part of another page.
import { h } from "../lib/dom.js";
import { Palette } from "./colours.js";
import { grouped } from "./groups.js";
import { NodeMap, groupTitle } from "./map.js";

export class SmallMap {
  // `marks` is a map from the name of a node to its mark; the map has these nodes.
  constructor(app, marks, label) {
    const nodes = [...app.store.nodes.values()];
    const palette = new Palette();
    palette.update("namespace", nodes);
    this.map = new NodeMap({
      palette, density: () => "large", choose: (name) => app.open("cluster", { node: name }, { marks }),
      announce: (text) => app.announce(text), header: (group) => groupTitle(group),
    });
    this.map.setGroups(grouped(nodes.filter((node) => marks.has(node.name)), app.store.groups));
    this.map.setMarks(marks);
    this.map.start();
    this.element = h("div", { class: "small-map", role: "group", "aria-label": label }, this.map.element);
  }

  stop() {
    this.map.stop();
  }
}

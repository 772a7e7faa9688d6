// The frame of the page: tabs, language, colours, status of the view, and the page of the current tab. The address is
// #page?key=value: the place of the page, such as its filters and the chosen node, so a reload, a link and the way back keep it.
import { h, fill } from "./lib/dom.js";
import { addTexts, language, setLanguage, t } from "./lib/i18n.js";
import { own } from "./lib/own.js";
import { isReport } from "./lib/api.js";
import { followFeed } from "./lib/feed.js";
import { Store } from "./lib/store.js";
import { duration } from "./lib/format.js";
import { pages } from "./pages.js";
import { texts } from "./texts.js";

const STALE_SECONDS = 60;

// Starts the console in `root`. `state` is that of a report, which was written at `time`; without it the feed is followed.
export function startApp(root, state = null, time = "") {
  for (const each of [texts, ...pages.map((page) => page.texts)]) addTexts(each);
  setLanguage(remembered("language") ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  setTheme(remembered("theme") ?? "auto");
  const store = new Store();
  const app = new App(root, store, time);
  app.draw();
  window.addEventListener("hashchange", () => app.show());
  if (state) {
    store.isReport = true;
    store.time = time;
    store.setState(state);
  } else {
    followFeed(store);
  }
  return app;
}

class App {
  constructor(root, store, time) {
    this.root = root;
    this.store = store;
    this.time = time;
    this.page = null;
    this.mounted = null;
    this.kept = {};
    this.places = {};
    store.follow(() => this.drawStatus());
  }

  // What a page keeps while another is shown, and not in the address.
  keptFor(id) {
    return (this.kept[id] ??= {});
  }

  // The place of a page: texts by name.
  placeFor(id) {
    return (this.places[id] ??= {});
  }

  // Changes the place of the shown page. The way back returns to the place before, unless `isStep` is false.
  put(values, isStep = true) {
    Object.assign(this.placeFor(this.page.id), values);
    const address = this.addressOf(this.page.id);
    if (address === location.hash) return;
    history[isStep ? "pushState" : "replaceState"](null, "", address);
    this.drawTabs();
  }

  // Shows a page; `values` change its place, such as a node to select, and `kept` what it keeps.
  open(id, values = {}, kept = {}) {
    Object.assign(this.keptFor(id), kept);
    Object.assign(this.placeFor(id), values);
    const address = this.addressOf(id);
    if (location.hash === address) this.show();
    else location.hash = address;
  }

  addressOf(id) {
    const query = new URLSearchParams(Object.entries(this.placeFor(id)).filter(([, value]) => value)).toString();
    return query ? `#${id}?${query}` : `#${id}`;
  }

  // Reads `text` out to users of screen readers.
  announce(text) {
    this.live.textContent = text;
  }

  draw() {
    this.status = h("span", { class: "status", role: "status" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.live = h("div", { class: "hidden", "aria-live": "polite" });
    this.tabs = h("nav", { "aria-label": t("app.tabs") });
    fill(this.root,
      h("a", { class: "skip", href: "#main", on: { click: (event) => { event.preventDefault(); this.main.focus(); } } }, t("app.skip")),
      h("header", { class: "top" },
        h("div", { class: "brand" }, logo(), h("span", { class: "brand-name" }, t("app.name")), this.status),
        this.tabs,
        h("div", { class: "settings" }, this.themeChoice(), this.languageChoice())),
      this.main, this.live);
    this.drawStatus();
    this.show();
  }

  show() {
    const [id, query] = location.hash.slice(1).split("?");
    this.page = pages.find((page) => page.id === id) ?? pages[0];
    this.places[this.page.id] = Object.fromEntries(new URLSearchParams(query));
    this.drawTabs();
    this.mounted?.unmount?.();
    this.mounted = null;
    fill(this.main);
    document.title = `${t(`${this.page.id}.title`)} · ${this.store.cluster || t("app.name")}`;
    if (this.page.needsServer && isReport()) fill(this.main, h("div", { class: "message quiet" }, h("p", null, t("needs.server"))));
    else this.mounted = this.page.mount(this.main, this) ?? null;
  }

  drawTabs() {
    fill(this.tabs, pages.map((page) => h("a", {
      href: this.addressOf(page.id), "aria-current": page === this.page ? "page" : null,
    }, t(`${page.id}.title`))));
  }

  drawStatus() {
    const { status, ageSeconds, cluster, reason } = this.store;
    const isStale = status === "live" && ageSeconds > STALE_SECONDS && !cluster.startsWith("file ");
    const kind = this.store.isReport ? "report" : status === "live" && cluster.startsWith("file ") ? "file" : isStale ? "stale" : status;
    const text = t(reason ? "status.refused" : `status.${kind}`, { time: this.time, age: duration(ageSeconds), reason: own(reason) });
    this.status.dataset.kind = kind;
    fill(this.status, h("span", { class: "dot", "aria-hidden": "true" }), cluster && h("span", { class: "cluster" }, cluster), h("span", { class: "state" }, text));
  }

  languageChoice() {
    const options = [["en", "English"], ["zh", "中文"]];
    return quietSelect(t("app.language"), options, language(), (value) => {
      remember("language", value);
      setLanguage(value);
      this.draw();
    });
  }

  themeChoice() {
    const options = ["auto", "light", "dark"].map((name) => [name, t(`app.theme.${name}`)]);
    return quietSelect(t("app.theme"), options, remembered("theme") ?? "auto", (value) => {
      remember("theme", value);
      setTheme(value);
      this.show();
    });
  }
}

function quietSelect(label, options, chosen, choose) {
  return h("select", { class: "quiet", "aria-label": label, title: label, on: { change: (event) => choose(event.target.value) } },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

function logo() {
  const bars = [[4, 4], [10, 4], [16, 4], [4, 13], [10, 13]].map(([x, y]) => h("rect", { x, y, width: 4, height: 7, rx: 1, fill: "currentColor" }));
  const free = h("rect", { x: 16.6, y: 13.6, width: 2.8, height: 5.8, rx: 0.6, fill: "none", stroke: "currentColor", "stroke-width": 1.2 });
  return h("svg", { class: "logo", viewBox: "0 0 24 24", "aria-hidden": "true" }, bars, free);
}

// Choices of the user are kept by the browser, where it allows that: a report opened from a file may not.
function remembered(name) {
  try {
    return localStorage.getItem(`console.${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`console.${name}`, value);
  } catch {
    // Then the choice holds until the page is closed.
  }
}

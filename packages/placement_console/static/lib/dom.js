// The one way by which pages make elements. Texts become text nodes, so no text of a tenant is ever parsed as HTML:
// nothing here or elsewhere uses innerHTML, and the Content-Security-Policy forbids it (Trusted Types).

// Control characters and characters that hide or reorder text (bidirectional marks) are shown as escapes.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export function printable(value) {
  return String(value).replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const SVG = new Set(["svg", "path", "rect", "line", "circle", "text", "g", "polyline", "title"]);
const ATTRIBUTES = new Set([
  "class", "id", "for", "type", "name", "value", "title", "role", "tabindex", "placeholder", "min", "max", "step",
  "rows", "cols", "accept", "lang", "dir", "scope", "colspan", "rowspan", "spellcheck", "autocomplete", "inputmode",
  "width", "height", "viewBox", "preserveAspectRatio", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "fill", "points",
  "stroke", "stroke-width", "text-anchor", "open", "hidden", "disabled", "checked", "selected", "multiple", "readonly",
]);

// h("p", { class: "note", on: { click } }, "text", element, [more], null): an element. `style` is an object of
// properties, `href` a page of the console (#...), `on` has listeners. Other attributes are those of the list, aria-*
// and data-*.
export function h(tag, props, ...children) {
  const element = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "href" && String(value).startsWith("#")) element.setAttribute("href", value);
    else if (ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name)) {
      element.setAttribute(name, value === true ? "" : printable(value));
    } else throw new Error(`h(): no attribute ${name}`);
  }
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(printable(child)));
  }
}

// Replaces the children of `element`.
export function fill(element, ...children) {
  element.replaceChildren();
  put(element, children);
  return element;
}

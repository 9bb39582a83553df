// Elements, made without markup: text stays text, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

/** Return the element of the page with this id; null where the page has none. */
export const $ = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...real(children));
  return element;
}

const real = (children) => children.filter((child) => child !== null && child !== "");

/** Return a new HTML element with attributes, listeners ("onclick"), and children: elements or text. */
export const make = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

/** Return a new SVG element. */
export const draw = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

/** Place an element by percentages of a size, in pixels of the photo. */
export function place(element, [x, y, w, h], [width, height]) {
  const { style } = element;
  style.left = `${(100 * x) / width}%`;
  style.top = `${(100 * y) / height}%`;
  style.width = `${(100 * w) / width}%`;
  style.height = `${(100 * h) / height}%`;
}

/** Replace the children of an element by those that are not null; the `data-key` with the focus keeps it. */
export function fill(element, ...children) {
  const active = document.activeElement;
  const key = element.contains(active) ? active.dataset?.key : undefined;
  element.replaceChildren(...real(children));
  if (key === undefined) return;
  for (const child of element.querySelectorAll("[data-key]")) {
    if (child.dataset.key === key) child.focus({ preventScroll: true });
  }
}

/** Return a list of sentences; null if there is none. */
export const list = (texts, attributes = {}) =>
  texts.length ? make("ul", attributes, ...texts.map((text) => make("li", {}, text))) : null;

/** Say how things go, to everybody. */
export function say(text) {
  $("status").textContent = text;
}

/** Show a problem, or none. */
export function complain(problem) {
  $("problem").hidden = !problem;
  $("problem").textContent = problem ? problem.told : "";
}

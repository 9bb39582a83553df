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

/**
 * Make these the children of an element; null is left out. A child that looks like the one that is there is not
 * replaced, so that a press that has begun on it ends on it, and the focus stays where it is.
 */
export function fill(element, ...children) {
  const wanted = real(children).map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  const active = document.activeElement;
  const key = element.contains(active) ? active.dataset?.key : undefined;
  const there = [...element.childNodes];
  wanted.forEach((child, at) => {
    if (at >= there.length) element.append(child);
    else if (!there[at].isEqualNode(child)) there[at].replaceWith(child);
  });
  for (const child of there.slice(wanted.length)) child.remove();
  if (key === undefined || element.contains(document.activeElement)) return;
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

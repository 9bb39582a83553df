// Elements, made without markup: text stays text, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

/** What regions are called, by their kind. */
export const NAMES = { face: "Face", box: "Box", object: "Object", text: "Text", plate: "Number plate", code: "Code" };

/** Return the element of the page with this id; null where the page has none. */
export const $ = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element[name] = value;
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

const LISTENERS = ["onclick", "onkeydown"];

/** Make these the children of an element; null is left out. */
export function replace(element, ...children) {
  element.replaceChildren(...real(children));
}

/**
 * Make these the children of an element; null is left out. Elements of the same kind and `data-key` are
 * changed, not replaced: a press that has begun on one ends on it, focus stays, and what is open stays open.
 */
export function fill(element, ...children) {
  const wanted = real(children).map((child) => (typeof child === "string" ? new Text(child) : child));
  const active = document.activeElement;
  const key = element.contains(active) ? active.dataset?.key : undefined;
  adopt(element, wanted);
  if (key === undefined || element.contains(document.activeElement)) return;
  for (const child of element.querySelectorAll("[data-key]")) {
    if (child.dataset.key === key) child.focus({ preventScroll: true });
  }
}

function adopt(element, wanted) {
  const there = [...element.childNodes];
  wanted.forEach((child, at) => {
    const old = there[at];
    if (!old) element.append(child);
    else if (old !== child && alike(old, child)) become(old, child);
    else if (old !== child) old.replaceWith(child);
  });
  for (const child of there.slice(wanted.length)) if (!wanted.includes(child)) child.remove();
}

const alike = (old, child) => old.nodeName === child.nodeName && old.dataset?.key === child.dataset?.key;

function become(old, child) {
  if (!(child instanceof Element)) {
    if (old.data !== child.data) old.data = child.data;
    return;
  }
  const lacks = ({ name }) => name !== "style" && name !== "open" && !child.hasAttribute(name);
  for (const { name } of [...old.attributes].filter(lacks)) old.removeAttribute(name);
  for (const { name, value } of child.attributes) {
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const style = child.style.cssText; // the policy refuses the attribute itself
  if (old.style.cssText !== style) old.style.cssText = style;
  for (const name of LISTENERS) old[name] = child[name];
  if (old.type === "checkbox") old.checked = child.checked; // whatever was pressed before
  adopt(old, [...child.childNodes]);
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

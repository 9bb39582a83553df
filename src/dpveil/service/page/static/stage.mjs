// The photo with its regions as they will be replaced, and a button on each.

import { moved } from "./boxes.mjs";
import { $, draw, fill, make, NAMES, place } from "./dom.mjs";
import { original } from "./media.mjs";

const MOST_LISTED = 6;
const UNREAD = "Nothing of it is released: remove it, or choose another file. All other photos go on.";
const UNSHOWN = "This browser cannot show photos of this format. The list of regions is right all the same.";

/** Return the path of polygons. */
const path = (outline) =>
  outline.map((line) => `M${line.map((point) => point.join(" ")).join("L")}Z`).join("");

/** Return the regions of a plan that are boxes by hand; none while there is no plan for all of them. */
function plannedBoxes({ planned, settings, boxes }) {
  const found = all(planned).filter(({ region }) => ["box", "object"].includes(region.origin.kind));
  return settings && found.length === boxes.length ? found : [];
}

/** Return the regions of a plan with their outlines, what each costs, and what takes its place. */
const all = (planned) => (planned?.plan.regions ?? []).map((region, at) => (
  { region, outline: planned.outlines[at], cost: planned.said.each[at], by: planned.said.by[at] }
));

/** Return the names of boxes, which count faces and objects apart, as certificates do. */
function named(boxes) {
  const count = { Box: 0, Object: 0 };
  return boxes.map(({ face }) => {
    const kind = face ? "Box" : "Object";
    count[kind] += 1;
    return `${kind} ${count[kind]}`;
  });
}

const FOUND = ["text", "plate", "code"];

/** Return what was found beside faces, numbered by kind in the order of the plan. */
function found(planned) {
  const count = {};
  return planned.filter(({ region: { origin } }) => FOUND.includes(origin.kind)).map((one) => {
    const { box, origin: { kind } } = one.region;
    count[kind] = (count[kind] ?? 0) + 1;
    const number = `${NAMES[kind].charAt(0)}${count[kind]}`;
    return {
      kind: "found", of: kind, key: `${kind}-${count[kind]}`, number, name: `${NAMES[kind]} ${count[kind]}`,
      box, outline: one.outline, ...told(one),
    };
  });
}

/** Return everything that is drawn over a photo: what it is, its box and outline, and what it is called. */
function shapes(photo) {
  const planned = all(photo.settings && photo.planned);
  const known = [...photo.faces.values()].sort((one, other) => one.number - other.number);
  const faces = known.map(({ number, box, outline }) => {
    const kind = photo.kept.has(number) ? "kept" : "face";
    const of = planned.find(({ region: { origin } }) => origin.kind === "face" && origin.number === number);
    return { kind, key: `face-${number}`, number, name: `Face ${number}`, box, outline, ...told(of) };
  });
  const own = plannedBoxes(photo);
  const names = named(photo.boxes);
  const boxes = photo.boxes.map(({ box, face }, at) => (
    {
      kind: "box", key: `box-${at}`, at, face, number: names[at].replace(/^(.)\w* /u, "$1"), name: names[at],
      box, outline: own[at]?.outline, ...told(own[at]),
    }
  ));
  const doubtful = (photo.planned?.doubtful ?? []).map((box, at) => (
    { kind: "doubtful", key: `maybe-${at}`, number: "?", name: `Place ${at + 1}`, box }
  ));
  return [...faces, ...found(planned), ...boxes, ...doubtful];
}

const told = (planned) => ({ cost: planned?.cost ?? "", by: planned?.by ? ` by ${planned.by}` : "" });

const area = ({ box }) => box[2] * box[3];

const TOLD = {
  face: ({ name, by }) => `${name} is replaced${by}. Press to keep it as it is.`,
  kept: ({ name }) => `${name} is kept as it is. Press to replace it.`,
  box: ({ name, by }) =>
    `${name} is replaced${by}. Arrow keys move it, with Shift they size it, Delete removes it.`,
  doubtful: ({ name }) => `${name} may be a face and is not hidden. Press to replace it.`,
};

/** Return the picture of a photo, or a grey ground for one that the browser cannot show. */
function picture(photo) {
  const unshown = photo.visible === false && photo.size ? UNSHOWN : "";
  const told = [photo.note, unshown].filter(Boolean).join(" ");
  if ($("shown").textContent !== told) $("shown").textContent = told;
  if (!photo.visible) return make("div", { class: "blank", "data-key": photo.id });
  return make("img", { src: photo.url, alt: "The original photo", "data-key": photo.id });
}

/** Show a photo; `act` is told what is pressed: act.toggle, act.add, act.move, act.remove, act.redraw. */
export function showStage(photo, act, draws, waiting) {
  fill($("original"), ...original(photo, act, waiting));
  $("stage").hidden = !photo.size;
  $("draw").disabled = !photo.size;
  $("draw").hidden = Boolean(photo.media);
  $("look-help").hidden = !photo.size;
  $("shown").classList.toggle("problem", !photo.size);
  $("shown").classList.toggle("warning", Boolean(photo.size) && photo.note !== "");
  if (!photo.size) {
    $("shown").textContent = photo.problem ? `${photo.problem.told}. ${UNREAD}` : "";
    return fill($("regions"));
  }
  const [width, height] = photo.size;
  $("stage").style.aspectRatio = `${width} / ${height}`;
  $("stage").style.maxWidth = `${(70 * width) / height}vh`;
  const shown = shapes(photo);
  const stacked = shown.toSorted((one, other) => area(other) - area(one));
  const layer = draw(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true", id: "layer" },
    ...stacked.map((shape) => draw("path", { class: shape.kind, d: path(outlineOf(shape)) })),
  );
  fill($("stage"), picture(photo), layer, ...stacked.map((shape) => button(shape, photo.size, act)));
  return fill($("regions"), ...listed(shown).map((shape) => entry(shape, act, draws)));
}

const corners = ([x, y, w, h]) => [[x, y], [x + w, y], [x + w, y + h], [x, y + h]];
const outlineOf = ({ outline, box }) => outline ?? [corners(box)];

/** Return what is listed of these: of many places of one kind, such as lines of text, all in one entry. */
function listed(shown) {
  const many = (shape) => shape.kind === "found" && shown.filter(({ of }) => of === shape.of);
  return shown.flatMap((shape) => {
    const alike = many(shape) || [];
    if (alike.length <= MOST_LISTED) return [shape];
    return shape === alike[0] ? [{ ...shape, name: `${shape.name} to ${alike.length}`, words: "are replaced" }] : [];
  });
}

const LISTED = {
  face: { words: "is replaced", does: "Keep" },
  kept: { words: "stays as it is", does: "Replace" },
  box: { words: "is replaced", does: "Remove" },
  doubtful: { words: "may be a face, and stays as it is", does: "Replace" },
  found: { words: "is replaced" },
};

function press(shape, act) {
  if (shape.kind === "doubtful") act.add(shape.box, true);
  else if (shape.kind === "face" || shape.kind === "kept") act.toggle(shape.number);
}

/** Return the button over a region; of what cannot be kept, its number alone, as the list tells of it. */
function button(shape, size, act) {
  const { kind, box, at } = shape;
  const keyed = (event) => {
    const other = moved(box, event.key, event.shiftKey, size);
    if (!other && event.key !== "Delete" && event.key !== "Backspace") return;
    event.preventDefault();
    if (other) act.move(at, other);
    else act.remove(at);
  };
  const attributes = { class: `spot ${kind}`, "data-key": shape.key };
  const pressed = kind === "found" ? { "aria-hidden": "true" } : {
    type: "button",
    "aria-label": TOLD[kind](shape),
    onclick: () => press(shape, act),
    onkeydown: kind === "box" ? keyed : null,
  };
  const made = make(kind === "found" ? "span" : "button", { ...attributes, ...pressed }, make("span", { "aria-hidden": "true" }, String(shape.number)));
  place(made, box, size);
  return made;
}

/** Return what the list says of a region, with buttons of its own. */
function entry(shape, act, draws) {
  const { words, does } = LISTED[shape.kind];
  const pressed = (key, label, text, onclick) =>
    make("button", { type: "button", "data-key": `${key}-${shape.key}`, "aria-label": label, onclick }, text);
  const other = shape.face ? "A grey box" : "A face";
  const redraw = () => act.redraw(shape.at);
  const change = shape.kind === "box" && draws
    ? pressed("change", `${other} for ${shape.name}`, `${other} instead`, redraw)
    : null;
  const what = ` ${shape.words ?? words}${shape.by ?? ""}${shape.cost ? `: ${shape.cost}` : ""}`;
  const main = () => (shape.kind === "box" ? act.remove(shape.at) : press(shape, act));
  return make("li", { class: shape.kind }, make("span", {}, make("strong", {}, shape.name), what), change,
    does ? pressed("list", `${does} ${shape.name}`, does, main) : null);
}

// The photo with its regions as they will be replaced, and a button on each.

import { moved } from "./boxes.mjs";
import { $, draw, fill, make, place } from "./dom.mjs";

const UNSHOWN = "This browser cannot show photos of this format. The list of regions is right all the same.";

/** Return the path of polygons. */
const path = (outline) =>
  outline.map((line) => `M${line.map((point) => point.join(" ")).join("L")}Z`).join("");

/** Return the boxes of a plan, with their outlines; none while there is none for all of a photo's boxes. */
function plannedBoxes({ planned, settings, boxes }) {
  const all = (planned?.plan.regions ?? []).map((region, at) => ({ region, outline: planned.outlines[at] }));
  const found = all.filter(({ region }) => region.origin.kind === "box");
  return settings && found.length === boxes.length ? found : [];
}

/** Return everything that is drawn over a photo: what it is, its box and outline, and what it is called. */
function shapes(photo) {
  const known = [...photo.faces.values()].sort((one, other) => one.number - other.number);
  const faces = known.map(({ number, box, outline }) => {
    const kind = photo.kept.has(number) ? "kept" : "face";
    return { kind, key: `face-${number}`, number, name: `Face ${number}`, box, outline };
  });
  const outlines = plannedBoxes(photo).map(({ outline }) => outline);
  const boxes = photo.boxes.map((box, at) => {
    const name = `Box ${at + 1}`;
    return { kind: "box", key: `box-${at}`, at, number: `B${at + 1}`, name, box, outline: outlines[at] };
  });
  const doubtful = (photo.planned?.doubtful ?? []).map((box, at) => (
    { kind: "doubtful", key: `maybe-${at}`, number: "?", name: `Place ${at + 1}`, box }
  ));
  return [...faces, ...boxes, ...doubtful];
}

const area = ({ box }) => box[2] * box[3];

const TOLD = {
  face: (name) => `${name} is replaced. Press to keep it as it is.`,
  kept: (name) => `${name} is kept as it is. Press to replace it.`,
  box: (name) => `${name} is replaced. Arrow keys move it, with Shift they size it, Delete removes it.`,
  doubtful: (name) => `${name} may be a face and stays in the clear. Press to replace it.`,
};

/** Return the picture of a photo; it tells the size of one that has no plan yet. */
function picture(photo, changed) {
  const old = $("stage").querySelector("img");
  if (old?.getAttribute("src") === photo.url) return old;
  $("shown").textContent = "";
  const image = make("img", { src: photo.url, alt: "The original photo", "data-key": photo.id });
  image.addEventListener("load", () => {
    if (photo.size) return;
    photo.size = [image.naturalWidth, image.naturalHeight];
    changed();
  });
  image.addEventListener("error", () => {
    $("shown").textContent = UNSHOWN;
  });
  return image;
}

/** Show a photo; `act` is told what is pressed: act.toggle, act.add, act.move, act.remove. */
export function showStage(photo, act, changed) {
  const image = picture(photo, changed);
  if (!photo.size) {
    fill($("regions"));
    return fill($("stage"), image);
  }
  const [width, height] = photo.size;
  $("stage").style.aspectRatio = `${width} / ${height}`;
  $("stage").style.maxWidth = `${(70 * width) / height}vh`;
  const all = shapes(photo);
  const stacked = all.toSorted((one, other) => area(other) - area(one));
  const layer = draw(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true", id: "layer" },
    ...stacked.map((shape) => draw("path", { class: shape.kind, d: path(outlineOf(shape)) })),
  );
  fill($("stage"), image, layer, ...stacked.map((shape) => button(shape, photo.size, act)));
  return fill($("regions"), ...all.map((shape) => entry(shape, photo, act)));
}

const corners = ([x, y, w, h]) => [[x, y], [x + w, y], [x + w, y + h], [x, y + h]];
const outlineOf = ({ outline, box }) => outline ?? [corners(box)];

const LISTED = {
  face: { words: "is replaced", does: "Keep" },
  kept: { words: "stays as it is", does: "Replace" },
  box: { words: "is replaced", does: "Remove" },
  doubtful: { words: "may be a face, and stays as it is", does: "Replace" },
};

function press(shape, act) {
  if (shape.kind === "doubtful") act.add(shape.box);
  else if (shape.kind !== "box") act.toggle(shape.number);
}

/** Return the button over a region. */
function button(shape, size, act) {
  const { kind, box, at } = shape;
  const keyed = (event) => {
    const other = moved(box, event.key, event.shiftKey, size);
    if (!other && event.key !== "Delete" && event.key !== "Backspace") return;
    event.preventDefault();
    if (other) act.move(at, other);
    else act.remove(at);
  };
  const attributes = {
    type: "button",
    class: `spot ${kind}`,
    "data-key": shape.key,
    "aria-label": TOLD[kind](shape.name),
    onclick: () => press(shape, act),
    onkeydown: kind === "box" ? keyed : null,
  };
  const made = make("button", attributes, make("span", { "aria-hidden": "true" }, String(shape.number)));
  place(made, box, size);
  return made;
}

/** Return what the list says of a region, with a button of its own. */
function entry(shape, photo, act) {
  const { words, does } = LISTED[shape.kind];
  const cost = photo.settings ? costOf(shape, photo) : "";
  const attributes = {
    type: "button",
    "data-key": `list-${shape.key}`,
    "aria-label": `${does} ${shape.name}`,
    onclick: () => (shape.kind === "box" ? act.remove(shape.at) : press(shape, act)),
  };
  const said = [make("strong", {}, shape.name), ` ${words}`, cost ? `: ${cost}` : ""];
  return make("li", { class: shape.kind }, make("span", {}, ...said), make("button", attributes, does));
}

function costOf(shape, photo) {
  const { plan, said } = photo.planned;
  const face = ({ origin }) => origin.kind === "face" && origin.number === shape.number;
  const region = shape.kind === "box" ? plannedBoxes(photo)[shape.at]?.region : plan.regions.find(face);
  return region ? said.each[plan.regions.indexOf(region)] : "";
}

// The review of a release: every place that was replaced, and those that may be faces, before and after.

import { make, NAMES } from "./dom.mjs";

const SIDE = 132;
const AROUND = 0.35;

/** Return the square of an image around a box, as far as it lies in it, as [x, y, side]. */
function around([x, y, w, h], [width, height]) {
  const side = Math.min(Math.max(w, h) * (1 + 2 * AROUND), width, height);
  const left = Math.min(Math.max(x + w / 2 - side / 2, 0), width - side);
  const top = Math.min(Math.max(y + h / 2 - side / 2, 0), height - side);
  return [left, top, side];
}

function cut(image, box, size, label) {
  const canvas = make("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": label });
  const [left, top, side] = around(box, size);
  const scale = image.naturalWidth / size[0];
  const from = [left, top, side, side].map((length) => length * scale);
  canvas.getContext("2d").drawImage(image, ...from, 0, 0, SIDE, SIDE);
  return canvas;
}

async function loaded(url) {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}

async function pairs(photo, place) {
  const images = await Promise.all([loaded(photo.url), loaded(photo.release.url)]);
  const { plan, doubtful } = photo.planned;
  const counts = {};
  const number = ({ kind, number }) => number ?? (counts[kind] = (counts[kind] ?? 0) + 1);
  const named = [
    ...plan.regions.map(({ box, origin }) => [box, `${NAMES[origin.kind] ?? "Place"} ${number(origin)}`, ""]),
    ...doubtful.map((box, at) => [box, `Place ${at + 1}`, "may be a face, and is not hidden"]),
  ];
  place.replaceChildren(...named.map(([box, name, warning]) =>
    make("li", { class: warning ? "doubtful" : "" },
      ...images.map((image, after) => cut(image, box, photo.size, `${name}, ${after ? "after" : "before"}`)),
      make("span", {}, make("strong", {}, name), warning ? ` ${warning}` : ""))));
}

/** Return the review of a photo's release; `changed` is called once somebody has looked. */
export function review(photo, changed) {
  const places = make("ul", { class: "review", "aria-label": "Replaced places, before and after" });
  if (photo.visible) pairs(photo, places).catch(() => places.remove());
  const box = make("input", { type: "checkbox", id: "reviewed", checked: photo.release.reviewed });
  box.addEventListener("change", () => {
    photo.release.reviewed = box.checked;
    changed();
  });
  const told = photo.media
    ? "I have looked at all of it: nothing that is left tells who it is"
    : "I have looked at every place: nothing that is left in the photo tells who it is";
  return make("div", {}, make("h3", {}, "Review"), places,
    make("p", {}, box, " ", make("label", { for: "reviewed" }, told)));
}

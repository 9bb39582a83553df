// The promise of a plan, in the words of the service; nothing is computed here.

import { $, fill, list, make } from "./dom.mjs";
import { promised as promisedOf } from "./media.mjs";

const NOTHING = "Nothing would be replaced: add a box, or let a face be replaced.";
const ONLY_BOXES = "No face was found in this photo: only your boxes are replaced.";
const NO_KEY = "Enter the API key first.";
const NO_FACE = "No face was found in this photo. Add a box around what is to be hidden.";
const NOBODY = "Nothing of what is chosen was found in it, so nothing would be replaced.";

const HEAD = ["equally likely candidates", "true one named in at most"];

/** Return the strength as a badge. */
export const badge = (strength) =>
  make("span", { class: `badge ${(strength || "none").split(" ").pop()}` }, strength || "no promise");

/** Return a table of the best that anybody can do. */
function bounds(rows) {
  const head = HEAD.map((text) => make("th", { scope: "col" }, text));
  const cells = rows.map(([many, most]) =>
    make("tr", {}, make("th", { scope: "row" }, many), make("td", {}, most)));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...cells));
}

/** Return a part that opens. */
export const more = (title, ...children) => make("details", {}, make("summary", {}, title), ...children);

const help = (text) => make("p", { class: "help" }, text);
const alarm = (text) => make("p", { class: "problem" }, text);

/** Show what the plan of a photo promises, or why there is none; `asks` is whether a key is still needed. */
export function showPromise(photo, waiting, asks) {
  const place = $("promise");
  place.setAttribute("aria-busy", waiting ? "true" : "false");
  if (!waiting) showNow(photo);
  if (waiting && photo.planned) return;
  fill(place, ...(photo && asks ? [help(NO_KEY)] : promised(photo, waiting)));
}

/** Say the promise in short beside the button only while the promise itself is out of sight. */
export function watchPromise() {
  const seen = ([{ isIntersecting: here }]) => $("meaning").parentElement.classList.toggle("beside", here);
  new IntersectionObserver(seen, { rootMargin: "0px 0px -230px 0px" }).observe($("promise-title"));
}

/** Show the promise in short beside the button that makes it. */
function showNow(photo) {
  const told = photo?.settings && !photo.problem && photo.planned.said.total ? photo.planned : null;
  fill($("now"), ...(told ? [badge(told.plan.strength), " ", told.said.total, ...coverage(photo)] : []));
  $("meaning").hidden = !told;
}

function promised(photo, waiting) {
  if (!photo) return [help("Choose a photo.")];
  if (waiting) return [make("p", { class: "help loading" }, photo.media ? `Looking at the ${photo.media.name}…` : "Looking for faces…")];
  if (photo.problem) return [alarm(explained(photo))];
  if (!photo.settings) return photo.faceless ? [alarm(explained(photo))] : [help(nothing(photo))];
  if (photo.media && !photo.planned.tracks) return [photo.failure ? alarm(`Not released: ${photo.failure}`) : null, ...promisedOf(photo.media, photo.settings)];
  const { plan, said } = photo.planned;
  return [
    photo.failure ? alarm(`Not released: ${photo.failure}`) : null,
    make("p", { class: "total" },
      badge(plan.strength), " ", make("strong", {}, said.total), ...coverage(photo)),
    make("p", {}, replaced(said, photo.media)),
    photo.faceless ? make("p", { class: "warning" }, ONLY_BOXES) : null,
    make("p", {}, said.sentence),
    bounds(said.bounds),
    list(said.warnings, { class: "warnings" }),
    list(said.notes, { class: "notes" }),
    more("What is not hidden", list(plan.in_the_clear)),
  ];
}

/** Return how many places or people are replaced, and by what. */
function replaced({ by, free }, media) {
  const count = new Map();
  for (const what of by) count.set(what, (count.get(what) ?? 0) + 1);
  const kinds = [...count].map(([what, n]) => (count.size > 1 ? `${n} by ${what}` : `by ${what}`)).join(", ");
  const each = by.length > 1 && count.size === 1 ? ", each " : count.size > 1 ? ": " : " ";
  const many = by.length > 1;
  const subject = media ? (many ? `${by.length} tracks are` : "One track is") : (many ? `${by.length} places are` : "One place is");
  const cost = free ? " Nothing of what is there is kept, which costs nothing." : many ? " What they cost adds up." : "";
  return `${subject} replaced${each}${kinds}.${cost}`;
}

function explained(photo) {
  return photo.faceless ? (photo.media ? NOBODY : NO_FACE) : photo.problem.told;
}

const nothing = (photo) => (photo.media ? "Nothing would be replaced: untick somebody." : NOTHING);

/** Return why a photo that was looked at cannot be released; empty if it can. */
export function obstacle(photo) {
  if (photo.problem || (!photo.settings && photo.faceless)) return explained(photo);
  return photo.settings ? "" : nothing(photo);
}

/** Return for how many faces the promise is, if some stay as they are: else a badge promises too much. */
export function coverage({ kept, faces, media }) {
  const clear = [...faces.keys()].filter((number) => kept.has(number)).sort((one, other) => one - other);
  if (!clear.length) return [];
  const replaced = faces.size - clear.length;
  const [one, several] = media ? ["person", "people"] : ["face", "faces"];
  const which = clear.length > 1 ? `${several} ${clear.join(", ")} are` : `${one} ${clear[0]} is`;
  const text = `for ${replaced || "none"} of ${faces.size} ${faces.size > 1 ? several : one}; ${which} shown`;
  return [" ", make("span", { class: "part" }, text)];
}

/** Return what came of looking at several photos. */
export function lookedAt(photos) {
  const ready = photos.filter((photo) => photo.ready).length;
  const not = photos.filter((photo) => !photo.ready && !photo.release).length;
  const what = photos.some((photo) => photo.media) ? "files" : "photos";
  return `Looked at all ${photos.length} ${what}${not ? `: ${ready} ready, ${not} cannot be released` : ""}.`;
}

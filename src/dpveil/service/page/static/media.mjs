// Documents and clips: pages are shown, and of a clip everybody who is in it, each of whom may stay.

import { make, NAMES } from "./dom.mjs";

const KINDS = [
  { ending: "pdf", name: "PDF", part: "page", is: /\.pdf$/iu, type: /^application\/pdf$/u },
  { ending: "mp4", name: "clip", part: "frame", is: /\.(?:mp4|m4v|mov|mkv|webm|avi|mpe?g)$/iu, type: /^video\//u },
];

/** Return what a file is; undefined for photos. */
export const mediaOf = ({ name, type }) => KINDS.find((kind) => kind.type.test(type) || kind.is.test(name));

const UNPLANNED = { plan: { strength: null, regions: [], in_the_clear: [] }, said: { price: "", free: true, total: "" } };

/** Return addresses of pictures that the service told in base64. */
const urls = (pictures) => pictures.map((text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }));
});

/** Return a plan of what the service saw in a document or clip; people who stay have no new pictures. */
export function planOf(told, faces) {
  const pages = told.pages && { of: told.of, urls: urls(told.pages) };
  const tracks = told.tracks?.map((track) => {
    const made = urls(track.pictures);
    return { ...track, urls: made.length ? made : faces.get(track.number)?.urls ?? [] };
  });
  return { ...UNPLANNED, ...told, pages, tracks, size: null, outlines: [], kept: [], doubtful: [] };
}

/** Forget the pictures of a plan that are not those of another one. */
export function forget(old, other) {
  const all = (planned) => [...(planned?.tracks ?? []).flatMap((track) => track.urls), ...(planned?.pages?.urls ?? [])];
  const still = new Set(all(other));
  for (const url of all(old)) if (!still.has(url)) URL.revokeObjectURL(url);
}

/** Return what is said of a document before it is released. */
export const promised = ({ name, part }, { regions }) => [
  make("p", {}, `Every face that is found in this ${name} is replaced, wherever it is, ${part} by ${part}.`),
  make("p", { class: "warning" }, regions.includes("text")
    ? "Text that is missed stays readable; pages become pictures."
    : "Text is not looked for, and stays readable; pages become pictures."),
  make("p", { class: "help" }, "What that promises is said with the release, before you download it."),
];

const EVERYBODY = "Only where faces alone are replaced can somebody be kept in a clip.";
const PEOPLE = "Tick whoever stays as they are. A number is one person for as long as they are followed (a “track”): who was "
  + "lost and is found again has two, so tick both.";

const clip = (src, label) => make("figure", {},
  make("video", { src, controls: true, muted: true, "aria-label": label, "data-key": src }),
  make("figcaption", {}, label));

const page = (src, label) => make("figure", {}, make("img", { src, alt: label }), make("figcaption", {}, label));

/** Return one person of a clip, with a box to tick. */
function person({ number, kind, words, urls: pictures }, { kept }, act, choosable) {
  const name = `${kind === "face" ? "Person" : NAMES[kind] ?? "Place"} ${number}`;
  const box = make("input", {
    type: "checkbox", "data-key": `stays-${number}`, checked: kept.has(number), onclick: () => act.toggle(number),
  });
  return make("li", { class: kept.has(number) ? "kept" : "" },
    make("span", { class: "strip" }, ...pictures.map((src) => make("img", { src, alt: "" }))),
    make("span", {}, make("strong", {}, name), ` ${words}`),
    choosable ? make("label", {}, box, ` ${name} stays as it is`) : null);
}

/** Return who is in a clip; nothing while that is not known. */
function people(photo, act, waiting) {
  const { tracks, choosable } = photo.planned ?? {};
  if (!tracks) return [];
  return [
    make("p", { class: "help" }, choosable ? PEOPLE : EVERYBODY),
    make("ul", { id: "people", "aria-label": "People in the clip", "aria-busy": waiting ? "true" : "false" },
      ...tracks.map((track) => person(track, photo, act, choosable))),
  ];
}

const looking = ({ done: { done, of } }) => make("p", { class: "help loading" }, "Looking for people in the clip… ",
  of ? make("progress", { value: done, max: of, "aria-label": "How much of the clip was looked at" }) : null);

/** Return the original of a document or clip, to look at before it is released; of photos nothing. */
export function original(photo, act, waiting) {
  if (!photo.media) return [];
  const { pages } = photo.planned ?? {};
  if (photo.media.ending === "mp4") {
    const seen = photo.release ? null : make("div", { class: "clips" }, clip(photo.url, "The original"));
    return [waiting ? looking(photo) : null, seen, ...people(photo, act, waiting)];
  }
  if (!pages || photo.release) return [];
  return [make("div", { class: "pages" }, ...pages.urls.map((src, at) => page(src, `Page ${at + 1}`))), rest(pages)];
}

const rest = ({ of, urls: { length } }) =>
  of > length ? make("p", { class: "help" }, `The first ${length} of ${of} pages.`) : null;

/** Return how far a job is, in words; empty if that is not known. */
export const progressText = ({ part }, { done, of }) => `${part} ${Math.min(done + 1, of)} of ${of}`;

/** Return original and release of one, as far as a page can show them. */
export function shown({ media, url, planned, release }) {
  if (media.ending === "mp4") {
    return [make("div", { class: "clips" }, clip(url, "The original"), clip(release.url, "The release"))];
  }
  const pairs = planned.pages.urls.flatMap((src, at) => [
    page(src, `Page ${at + 1}`), page(release.pages.urls[at], `Page ${at + 1}, released`),
  ]);
  return [make("div", { class: "pages pairs" }, ...pairs), rest(planned.pages),
    make("p", { class: "warning" }, "Download it, and look at every page before you publish it.")];
}

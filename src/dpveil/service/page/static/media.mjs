// Documents and clips, which are released whole: nothing of them is planned or shown before.

import { make } from "./dom.mjs";

const KINDS = [
  { ending: "pdf", name: "PDF", part: "page", is: /\.pdf$/iu, type: /^application\/pdf$/u },
  { ending: "mp4", name: "clip", part: "frame", is: /\.(?:mp4|m4v|mov|mkv|webm|avi|mpe?g)$/iu, type: /^video\//u },
];

/** Return what a file is; undefined for photos. */
export const mediaOf = ({ name, type }) => KINDS.find((kind) => kind.type.test(type) || kind.is.test(name));

/** Return what stands in the place of a plan. */
export const unplanned = () => ({
  plan: { strength: null, regions: [], in_the_clear: [] },
  size: null, outlines: [], kept: [], doubtful: [],
  said: { price: "", free: true, each: [], by: [], total: "" },
});

/** Return what is said of one before it is released. */
export const promised = ({ name, part }, { regions }) => [
  make("p", {}, `Every face that is found in this ${name} is replaced, wherever it is, ${part} by ${part}.`),
  make("p", { class: "warning" }, name === "clip" ? "How people move stays, and sound is left out."
    : `${regions.includes("text") ? "Text that is missed" : "Text is not looked for, and"} stays readable; pages become pictures.`),
  make("p", { class: "help" }, "What that promises is said with the release, before you download it."),
];

const KEEPING = "Everybody is replaced here. To keep somebody: dpveil faces numbers the people of a clip, and dpveil "
  + "obfuscate --except keeps some.";

const clip = (src, label) => make("figure", {},
  make("video", { src, controls: true, muted: true, "aria-label": label, "data-key": src }),
  make("figcaption", {}, label));

/** Return the original of a clip, to look at before it is released; of other files nothing. */
export const original = ({ media, url, release }) =>
  media?.ending === "mp4" && !release ? [clip(url, "The original"), make("p", { class: "help" }, KEEPING)] : [];

/** Return how far a job is, in words; empty if that is not known. */
export const progressText = ({ part }, { done, of }) => `${part} ${Math.min(done + 1, of)} of ${of}`;

/** Return original and release of one, as far as a page can show them. */
export function shown(photo) {
  if (photo.media.ending !== "mp4") {
    return [make("p", { class: "warning" }, "Download it, and look at every page before you publish it.")];
  }
  return [make("div", { class: "clips" }, clip(photo.url, "The original"), clip(photo.release.url, "The release"))];
}

// A release beside its original, its certificate in words, and what is downloaded.

import { blob, json, look, newKey, release } from "./api.mjs";
import { payer } from "./budget.mjs";
import { $, list, make, replace } from "./dom.mjs";
import { planOf, shown } from "./media.mjs";
import { certificateName, endingOf, quoted, releaseNames } from "./names.mjs";
import { review } from "./review.mjs";
import { badge, coverage, more } from "./said.mjs";

/** Release a photo as it was planned, and keep its picture and certificate in this tab. */
export async function releasePhoto(photo, heard) {
  const settings = { ...photo.settings, ...(payer() ? { subject: payer() } : {}) };
  photo.key ??= newKey();
  const told = await release(photo.file, settings, photo.key, heard).catch((error) => {
    if (error.kind === "Gone") photo.key = null; // it was paid and is lost: the next attempt is another one
    throw error;
  });
  const [image, certificate, words] = await Promise.all([
    blob(told.image_url),
    blob(told.certificate_url),
    json(`/page/releases/${told.id}`),
  ]);
  const pages = photo.media?.ending === "pdf" ? planOf(await look(image, {})).pages : null;
  photo.release = { image, certificate, words, pages, url: URL.createObjectURL(image), reviewed: false };
}

/** Return a link that downloads a blob, which lives as long as the page shows it. */
function download(text, contents, name) {
  const link = make("a", { class: "button", href: URL.createObjectURL(contents), download: name }, text);
  links.push(link);
  return link;
}

const links = [];

function forgetLinks() {
  for (const link of links.splice(0)) URL.revokeObjectURL(link.href);
}

/** Return original and release, one over the other, with a slider between them. */
function compared(photo) {
  if (photo.media) return shown(photo);
  if (!photo.visible) return [make("img", { class: "alone", src: photo.release.url, alt: "The release" })];
  const [width, height] = photo.size;
  const before = make("img", { src: photo.url, alt: "The original photo" });
  const after = make("img", { src: photo.release.url, alt: "The release" });
  const line = make("div", { class: "line", "aria-hidden": "true" });
  const told = { id: "slider", "aria-label": "How much of the original is shown, in percent" };
  const range = make("input", { type: "range", min: 0, max: 100, value: 50, ...told });
  const slide = () => {
    before.style.clipPath = `inset(0 ${100 - range.value}% 0 0)`;
    line.style.left = `${range.value}%`;
  };
  range.addEventListener("input", slide);
  slide();
  const pair = make("div", { class: "pair" }, after, before, line);
  pair.style.aspectRatio = `${width} / ${height}`;
  pair.style.maxWidth = `${(70 * width) / height}vh`;
  const side = (text) => make("span", { "aria-hidden": "true" }, text);
  return [pair, make("div", { class: "slide" }, side("original"), range, side("release"))];
}

/** Show the release of a photo, if it has one; `changed` is called once it was reviewed. */
export function showResult(photo, changed) {
  $("result").hidden = !photo?.release;
  if (!photo?.release) {
    forgetLinks();
    return replace($("released"));
  }
  if ($("released").dataset.shown === photo.release.url && $("released").childElementCount) return undefined;
  forgetLinks();
  $("released").dataset.shown = photo.release.url;
  const { words, image, certificate } = photo.release;
  const [name] = releaseNames([photo.name], [endingOf(image)]);
  return replace($("released"),
    ...compared(photo),
    make("p", { class: "total" },
      badge(words.strength), " ", make("strong", {}, words.total), ...coverage(photo)),
    objections(words.objections),
    review(photo, changed),
    make("p", { class: "buttons" },
      download(`Download ${photo.media?.name ?? "picture"}`, image, name),
      download("Download certificate", certificate, certificateName(name))),
    make("p", { class: "help" }, ...verified(name), words.note),
    make("h3", {}, "To quote"),
    make("blockquote", {}, words.quotation),
    list(words.warnings, { class: "warnings" }),
    list(words.notes, { class: "notes" }),
    more("What is covered", list(words.covers)),
    more("What is not hidden", list(words.in_the_clear)));
}

const objections = (reasons) =>
  reasons.length ? make("p", { class: "problem" }, `Not for publication: ${reasons.join("; ")}.`) : null;

const verified = (name) =>
  ["Keep both side by side: ", make("code", {}, `dpveil verify ${quoted(name)}`), " checks them. "];

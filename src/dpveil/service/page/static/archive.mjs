// The link to an archive of all releases with their certificates, made when they change.

import { $, complain } from "./dom.mjs";
import { certificateName, endingOf, releaseNames } from "./names.mjs";
import { zipped } from "./zip.mjs";

let zip = { of: "", url: "" };

/** Return an archive of the releases of photos, with their certificates. */
async function archive(names, photos) {
  const files = photos.flatMap(({ release }, at) => [
    [names[at], release.image],
    [certificateName(names[at]), release.certificate],
  ]);
  const read = await Promise.all(files.map(async ([name, blob]) => (
    { name, bytes: new Uint8Array(await blob.arrayBuffer()) }
  )));
  return new Blob(zipped(read), { type: "application/zip" });
}

/** Show the link to the releases of these photos, unless there is none, or more are being made. */
export async function showArchive(photos, busy) {
  const done = photos.filter((photo) => photo.release);
  const of = done.map((photo) => photo.release.url).join(" ");
  const link = $("zip");
  link.hidden = !done.length || busy;
  if (link.hidden || zip.of === of) return;
  URL.revokeObjectURL(zip.url);
  zip = { of, url: "" };
  link.removeAttribute("href");
  const names = releaseNames(done.map((photo) => photo.name), done.map(({ release }) => endingOf(release.image)));
  try {
    const made = URL.createObjectURL(await archive(names, done));
    if (zip.of !== of) return void URL.revokeObjectURL(made);
    zip.url = made;
    link.href = made;
    link.download = done.length > 1 ? "releases.zip" : names[0].replace(/\.\w+$/u, ".zip");
    const one = "Download with certificate (zip)";
    link.textContent = done.length > 1 ? `Download all ${done.length} (zip)` : one;
  } catch (error) {
    complain({ told: error.message });
  }
}

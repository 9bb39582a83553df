// Names of files: what a photo was called here, made safe to be written elsewhere.

const UNSAFE = /[\u0000-\u001f\u007f-\u009f<>:"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/iu;
const LONGEST = 80;

/** Return the name of a photo without its ending: no path, no control letters, nothing hidden. */
export function stem(name) {
  const last = String(name).split(/[/\\]/u).pop();
  const bare = last.replace(/\.[^.]*$/u, "").replace(UNSAFE, "_").replace(/^[.\s]+|[.\s]+$/gu, "");
  const short = Array.from(bare).slice(0, LONGEST).join("");
  return !short || RESERVED.test(short) ? `photo${short ? `-${short}` : ""}` : short;
}

const ENDINGS = { "image/jpeg": "jpg", "application/pdf": "pdf", "video/mp4": "mp4" };

/** Return the ending of the name of a release, by what the service says that it is. */
export const endingOf = ({ type }) => ENDINGS[type] ?? "png";

/** Return the names of releases with their endings, no two alike, also where capitals do not count. */
export function releaseNames(names, endings = []) {
  const taken = new Set();
  return names.map((name, at) => {
    const own = stem(name);
    const ending = endings[at] ?? "png";
    let made = `${own}.private.${ending}`;
    for (let n = 2; taken.has(made.toLowerCase()); n += 1) made = `${own}-${n}.private.${ending}`;
    taken.add(made.toLowerCase());
    return made;
  });
}

/** Return the name of the certificate that `dpveil verify` looks for beside a release. */
export const certificateName = (name) => `${name}.certificate.json`;

/** Return a name as it is written in a shell: one that begins with a dash is no option. */
export function quoted(name) {
  const path = name.startsWith("-") ? `./${name}` : name;
  return /^[\w./-]+$/u.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

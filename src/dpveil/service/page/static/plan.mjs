// A plan of a clip: read with every number as it is written, changed in a few places, and written again.

export const SCHEMA = "dpveil.video-plan/1";
export const MOST_BYTES = 1 << 25;
const MARK = "\ue000";
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gu;
const WIDTH = 100;
const AGAIN = "Make it again with dpveil video analyze.";
const KEY = ["frame", "x", "y", "w", "h"];

/** A number, with the digits of its file: ε is exact there, and a float would round it. */
export class Numeral {
  constructor(text) {
    this.text = text;
  }

  get value() {
    return Number(this.text);
  }
}

/** Return the plan that a text states; throws an error that says what is wrong. */
export function read(text) {
  let plan = null;
  try {
    JSON.parse(text);
    if (text.includes(MARK) || /\\ue000/iu.test(text)) throw new Error("a mark");
    const marked = text.replace(TOKEN, (token) => (token.startsWith("\"") ? token : `"${MARK}${token}"`));
    plan = JSON.parse(marked, (_, value) => (
      typeof value === "string" && value.startsWith(MARK) ? new Numeral(value.slice(1)) : value
    ));
  } catch {
    throw new Error(`This file is not the JSON of a plan. ${AGAIN}`);
  }
  const wrong = fault(plan);
  if (wrong) throw new Error(`This is not a plan that can be shown: ${wrong}. ${AGAIN}`);
  return plan;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isWhole = (value) => value instanceof Numeral && Number.isSafeInteger(value.value);
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every(isWhole);

/** Return what keeps a plan from being shown; null if nothing does. */
function fault(plan) {
  if (!isObject(plan) || plan.schema !== SCHEMA) return `its schema is not ${SCHEMA}`;
  const { clip, tracks } = plan;
  const sized = isObject(clip) && isWhole(clip.width) && isWhole(clip.height);
  if (!sized || clip.width.value < 1 || clip.height.value < 1) return "it does not say how large the clip is";
  if (!Array.isArray(clip.steps) || !clip.steps.every(isPair) || !unit(plan)) {
    return "it does not say when frames are shown";
  }
  if (!Array.isArray(tracks) || !tracks.length) return "it has no tracks";
  const odd = tracks.findIndex((track) => !isTrack(track));
  if (odd >= 0) return `tracks[${odd}] is not a track`;
  if (new Set(numbers(plan)).size < tracks.length) return "two tracks have one number";
  const { cuts = [] } = plan;
  return Array.isArray(cuts) && cuts.every(isWhole) ? null : "its cuts are no frames";
}

function isTrack(track) {
  if (!isObject(track) || !isWhole(track.number) || typeof track.kind !== "string") return false;
  const { keys, person = null, visible = false } = track;
  if (!Array.isArray(keys) || !keys.length || !keys.every(isKey)) return false;
  if (keys.some((key, at) => at > 0 && key.frame.value <= keys[at - 1].frame.value)) return false;
  return (person === null || isWhole(person)) && typeof visible === "boolean";
}

const isKey = (key) => isObject(key) && KEY.every((name) => isWhole(key[name]));

/** Return the unit of times in seconds; 0 if it is none. */
function unit(plan) {
  const [above, below = "1"] = String(plan.clip.time_base).split("/");
  const seconds = /^\d+$/u.test(above) && /^\d+$/u.test(below) ? Number(above) / Number(below) : 0;
  return Number.isFinite(seconds) ? seconds : 0;
}

const steps = (plan) => plan.clip.steps.map((pair) => pair.map((part) => part.value));

/** Return the number of frames of the clip. */
export const frames = (plan) => 1 + steps(plan).reduce((sum, [, count]) => sum + count, 0);

/** Return when a frame is shown, in seconds after the first. */
export function seconds(plan, frame) {
  let [left, time] = [frame, 0];
  for (const [step, count] of steps(plan)) {
    time += step * Math.min(left, count);
    left -= Math.min(left, count);
  }
  return time * unit(plan);
}

/** Return the frame that is shown so many seconds after the first. */
export function frameAt(plan, second) {
  let [frame, time] = [0, second / unit(plan) + 1e-6];
  for (const [step, count] of steps(plan)) {
    const more = Math.min(count, step > 0 ? Math.floor(time / step) : count);
    frame += more;
    time -= more * step;
    if (more < count) break;
  }
  return frame;
}

export const numbers = (plan) => plan.tracks.map((track) => track.number.value);

/** Return the box (x, y, w, h) of a track in a frame, on a line between keys; null where it is not. */
export function box({ keys }, frame) {
  const after = keys.findIndex((key) => key.frame.value >= frame);
  if (after < 0 || frame < keys[0].frame.value) return null;
  const [from, to] = [keys[Math.max(0, after - 1)], keys[after]];
  const span = to.frame.value - from.frame.value;
  const share = span ? (frame - from.frame.value) / span : 1;
  return KEY.slice(1).map((name) => from[name].value + share * (to[name].value - from[name].value));
}

/** Return the tracks that are the same person's as one, without that one. */
export const others = (plan, track) => plan.tracks.filter((other) => (
  other !== track && track.person && other.person?.value === track.person.value
));

/** Make a track one person with another, or with nobody if that is null; the rest of a group stays one. */
export function link(plan, track, other) {
  const left = others(plan, track);
  if (left.length === 1) left[0].person = null;
  track.person = null;
  if (!other) return;
  const used = plan.tracks.map(({ person }) => person?.value ?? 0);
  other.person ??= new Numeral(String(1 + Math.max(0, ...used)));
  track.person = other.person;
}

/** Return the text of a plan, as dpveil writes it: what is short is in one line. */
export const write = (plan) => `${written(plan, "\n")}\n`;

function written(value, line) {
  const text = short(value);
  if (value === null || typeof value !== "object" || value instanceof Numeral) return text;
  if (text.length + line.length <= WIDTH) return text;
  const deeper = `${line}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}${deeper}${parts(value, (each) => written(each, deeper)).join(`,${deeper}`)}${line}${close}`;
}

function short(value) {
  if (value instanceof Numeral) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const text = parts(value, short).join(", ");
  return Array.isArray(value) ? `[${text}]` : `{${text}}`;
}

const parts = (value, each) => (
  Array.isArray(value)
    ? value.map((part) => each(part))
    : Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${each(part)}`)
);

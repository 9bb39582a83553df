// The page for plans of clips: a plan is opened, changed and saved in the browser, and never sent.

import { $, complain, draw, make, place, replace, say } from "./dom.mjs";
import { MOST_BYTES, box, frameAt, frames, link, numbers, others, read, seconds, write } from "./plan.mjs";

const ENDS = {
  left: "leaves the picture", cut: "cut", end: "to the end", merged: "another track goes on", lost: "lost",
};
const LARGE = "This file is too large for a plan.";
const MOST_TRACKS = 300;
const MANY = `The plan has more than ${MOST_TRACKS} tracks, too many for this page. Change it in an editor.`;
const UNPLAYED = "This browser cannot play the clip. The list of tracks is right all the same.";

let plan = null;
let saved = "plan.json";
let url = null;
let playing = null;

/** Return a time in minutes and seconds. */
function clock(time) {
  const tenths = Math.round(time * 10);
  return `${Math.floor(tenths / 600)}:${((tenths % 600) / 10).toFixed(1).padStart(4, "0")}`;
}

const first = (track) => track.keys[0].frame.value;
const last = (track) => track.keys.at(-1).frame.value;
const named = (track) => `${track.kind[0].toUpperCase()}${track.kind.slice(1)} ${track.number.text}`;

async function openPlan(file) {
  try {
    if (file.size > MOST_BYTES) throw new Error(LARGE);
    const found = read(await file.text());
    if (found.tracks.length > MOST_TRACKS) throw new Error(MANY);
    plan = found;
  } catch (error) {
    complain({ told: error.message });
    return;
  }
  complain(null);
  saved = file.name.endsWith(".json") ? file.name : "plan.json";
  $("look").hidden = false;
  $("look-title").textContent = String(plan.clip.name ?? "Clip");
  replace($("tracks"), ...plan.tracks.map(row));
  showLinks();
  changed();
  say(`${count(plan.tracks.length, "track")} in ${clock(seconds(plan, frames(plan) - 1))}.`);
  $("look").focus();
}

const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

/** Return the line of a track: when it is seen, and what can be chosen. */
function row(track) {
  const number = track.number.text;
  const times = `${clock(seconds(plan, first(track)))} to ${clock(seconds(plan, last(track)))}`;
  const end = ENDS[track.end] ? `, ${ENDS[track.end]}` : "";
  const visible = make("input", {
    type: "checkbox", id: `visible-${number}`, checked: track.visible === true,
    onchange: ({ target }) => {
      track.visible = target.checked;
      changed();
    },
  });
  const same = make("select", {
    id: `same-${number}`, class: "same",
    onchange: ({ target }) => {
      link(plan, track, plan.tracks.find((other) => other.number.text === target.value) ?? null);
      showLinks();
      changed();
    },
  });
  return make(
    "li", { "data-number": number },
    make("h3", {}, named(track)), make("p", { class: "help" }, `${times}${end}`), timeline(track),
    make("p", {}, visible, make("label", { for: `visible-${number}` }, " Leave it as it is")),
    make("p", {}, make("label", { for: `same-${number}` }, "Same as "), same),
    make("button", { type: "button", onclick: () => seek(track) }, `Show ${named(track)}`),
  );
}

/** Return when a track is seen, as a bar in the time of the clip, with its cuts. */
function timeline(track) {
  const whole = frames(plan);
  const bar = make("span", { class: "seen" });
  place(bar, [first(track), 0, last(track) - first(track) + 1, 1], [whole, 1]);
  const cuts = (plan.cuts ?? []).map((cut) => {
    const mark = make("span", { class: "cut" });
    mark.style.left = `${(100 * cut.value) / whole}%`;
    return mark;
  });
  return make("div", { class: "time", "aria-hidden": "true" }, bar, ...cuts);
}

/** Offer every other track of the kind, and show which one each is linked with. */
function showLinks() {
  for (const track of plan.tracks) {
    const linked = others(plan, track);
    const alike = plan.tracks.filter((other) => other !== track && other.kind === track.kind);
    const select = $(`same-${track.number.text}`);
    replace(
      select, make("option", { value: "" }, "nobody else"),
      ...alike.map((other) => make("option", { value: other.number.text }, named(other))),
    );
    select.value = linked.length ? linked[0].number.text : "";
    select.disabled = !alike.length;
  }
}

/** Say what would be replaced now, and offer the plan. */
function changed() {
  const replaced = plan.tracks.filter((track) => track.visible !== true);
  const persons = new Set(replaced.map((track) => track.person?.text ?? `track ${track.number.text}`));
  const left = numbers(plan).length - replaced.length;
  $("now").textContent = replaced.length
    ? `${count(replaced.length, "track")} of ${count(persons.size, "person")} replaced`
    : "Nothing would be replaced";
  const kept = left ? `${count(left, "track")} left as in the original. ` : "";
  $("why").textContent = replaced.length
    ? `${kept}Linked tracks get one face and are paid once.`
    : "A release needs at least one track that is replaced.";
  if (url) URL.revokeObjectURL(url);
  url = URL.createObjectURL(new Blob([write(plan)], { type: "application/json" }));
  Object.assign($("save"), { href: url, download: saved, hidden: !replaced.length });
  showBoxes();
}

/** Show a clip of this disk above the tracks, with their boxes. */
function openClip(file) {
  const video = $("clip");
  if (playing) URL.revokeObjectURL(playing);
  playing = URL.createObjectURL(file);
  video.src = playing;
  $("player").hidden = false;
  $("other").hidden = !plan || file.name === plan.clip.name;
}

function seek(track) {
  const video = $("clip");
  if (!$("player").hidden) video.currentTime = seconds(plan, Math.round((first(track) + last(track)) / 2));
  showBoxes();
  if (!$("player").hidden) video.scrollIntoView({ block: "nearest" });
}

/** Draw the boxes of tracks over the frame that is shown. */
function showBoxes() {
  if (!plan || $("player").hidden) return;
  const { width, height } = plan.clip;
  const frame = frameAt(plan, $("clip").currentTime);
  const shown = plan.tracks.map((track) => [track, box(track, frame)]).filter(([, at]) => at);
  const layer = $("layer");
  layer.setAttribute("viewBox", `0 0 ${width.text} ${height.text}`);
  replace(layer, ...shown.flatMap(([track, [x, y, w, h]]) => [
    draw("rect", { x, y, width: w, height: h, class: track.visible === true ? "kept" : "gone" }),
    draw("text", { x, y: y - 4, "font-size": Math.max(12, height.value / 30) }, track.number.text),
  ]));
}

function watch() {
  showBoxes();
  if (!$("clip").paused) requestAnimationFrame(watch);
}

$("files").onchange = ({ target }) => target.files.length && openPlan(target.files[0]);
$("source").onchange = ({ target }) => target.files.length && openClip(target.files[0]);
$("clip").onplay = watch;
$("clip").onseeked = showBoxes;
$("clip").onloadeddata = showBoxes;
$("clip").onerror = () => complain({ told: UNPLAYED });
$("drop").ondragover = (event) => event.preventDefault();
$("drop").ondrop = (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) openPlan(event.dataTransfer.files[0]);
};

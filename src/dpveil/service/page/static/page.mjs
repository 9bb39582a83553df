// The page: photos come in, are planned, looked at, released and downloaded.

import { json, look, plan, useKey } from "./api.mjs";
import { showArchive } from "./archive.mjs";
import { drawing, middle, showDrawing } from "./boxes.mjs";
import * as budget from "./budget.mjs";
import { $, complain, fill, say } from "./dom.mjs";
import { draws, onChoice, settings, showNoOffers, showOffers } from "./keep.mjs";
import { progressText } from "./media.mjs";
import { Photo } from "./photos.mjs";
import { releasePhoto, showResult } from "./result.mjs";
import { lookedAt, obstacle, showPromise, watchPromise } from "./said.mjs";
import { showStage } from "./stage.mjs";
import { thumbnail } from "./thumbs.mjs";
import { Planner } from "./work.mjs";

const MOST_PRICED = 400;
const UNKNOWN_KEY = "This key is not known here. Was it copied whole? Whoever runs the service makes keys.";
const ANEW = "All faces are replaced again: choose anew which to keep.";

const SILENT = "The service does not answer: is dpveil serve still running? It is asked again until it does.";

const photos = [];
let selected = null;
let releasing = false;
let stopDrawing = null;
let asking = null;
let silent = false;

const planner = new Planner(settings, makePlan, show);

async function makePlan(photo, wanted, signal) {
  if (photo.media) return look(photo.file, wanted, signal, heard(photo));
  if ($("key")) await asking; // which tells a subject that this key may spend
  const subject = budget.planner();
  return plan(photo.file, { ...wanted, ...(subject ? { subject } : {}) }, signal);
}

/** Return what notes how much of a photo was looked at. */
function heard(photo) {
  photo.done = {};
  return (done) => {
    photo.done = done;
    show();
  };
}

/** Keep no face after an object has changed: faces under objects have no number, so others may get theirs. */
function renumbered() {
  selected.replaceAll(ANEW);
}

const act = {
  toggle(number) {
    selected.note = "";
    if (selected.kept.has(number)) selected.kept.delete(number);
    else selected.kept.add(number);
    planner.ask(selected);
  },
  add(box, face = false) {
    selected.boxes.push({ box, face });
    if (!face) renumbered();
    planner.ask(selected);
  },
  move(at, box) {
    selected.boxes[at].box = box;
    if (!selected.boxes[at].face) renumbered();
    planner.ask(selected);
  },
  redraw(at) {
    selected.boxes[at].face = !selected.boxes[at].face;
    renumbered();
    planner.ask(selected);
  },
  remove(at) {
    const [gone] = selected.boxes.splice(at, 1);
    if (!gone.face) renumbered();
    planner.ask(selected);
    $("draw").focus();
  },
};

const ready = () => photos.filter((photo) => photo.ready && !planner.busy(photo));

function show() {
  const small = (photo) => thumbnail(photo, planner, photo === selected, () => select(photo));
  fill($("photos"), ...photos.map(small));
  $("look").hidden = !selected;
  showPromise(selected, selected !== null && planner.busy(selected), $("key") && !settings());
  showResult(selected, show);
  if (selected) {
    $("look-title").textContent = selected.name;
    if (!stopDrawing) showStage(selected, act, draws(), planner.busy(selected));
  }
  for (const id of ["draw", "remove", "stage", "regions", "original", "settings"]) $(id).inert = releasing; // what is paid for was shown
  if ($("subject")) $("subject").disabled = releasing;
  showRelease();
  showLooking();
  showSilence();
  showArchive(photos, releasing);
}

function showRelease() {
  const all = ready();
  if (!releasing && !photos.some((photo) => planner.busy(photo))) {
    const priced = [...all.slice(0, MOST_PRICED), selected];
    asking = budget.ask(priced.map((photo) => photo?.price).filter(Boolean), show);
  }
  const again = selected?.release;
  const costs = again && !selected.planned.said.free ? ", at the same cost" : "";
  const many = photos.length > 1;
  $("release").textContent = again ? `Release again${costs}` : many ? "Release this one" : "Release";
  $("release").classList.toggle("main", !many && !again);
  const possible = selected && (again || all.includes(selected));
  const price = possible ? selected.price : "";
  $("release").disabled = releasing || !possible || !budget.settled() || Boolean(budget.problem(price));
  const known = selected && settings() && !again && !planner.busy(selected);
  if (releasing) budget.showWhy("", "", false);
  else budget.showWhy(price, known ? obstacle(selected) : "", Boolean(again));
  showAll(all, many);
}

function showAll(all, many) {
  const done = photos.every((photo) => photo.release);
  $("all").hidden = !many || done;
  $("zip").classList.toggle("main", done);
  $("all").disabled = releasing || !all.some((photo) => !budget.problem(photo.price)) || !budget.settled();
  $("all").textContent = all.length > 1 ? `Release all ${all.length}` : "Release all";
}

function showLooking() {
  if (releasing || photos.length < 2) return;
  const done = photos.filter((photo) => !planner.busy(photo)).length;
  if (done < photos.length) progress(done, photos.length, `Looking at ${photos.length} photos…`);
  else if (!$("progress").hidden) progress(done, done, lookedAt(photos));
}

function showSilence() {
  if (planner.silent === silent) return;
  silent = planner.silent;
  complain(silent ? { told: SILENT } : null);
}

function select(photo) {
  stopDrawing?.();
  selected = photo;
  planner.first(photo);
  complain(null);
  show();
}

function add(files) {
  const made = [...files].map((file) => new Photo(file, show));
  if (!made.length) return;
  photos.push(...made);
  selected = selected ?? made[0];
  complain(null);
  planner.ask(...made);
}

function removePhoto() {
  const at = photos.indexOf(selected);
  stopDrawing?.();
  planner.drop(selected);
  photos.splice(at, 1);
  selected.close();
  selected = photos[Math.min(at, photos.length - 1)] ?? null;
  say(""); // what was said counted it
  show();
  (selected ? $("look") : $("files")).focus();
}

function releaseSelected() {
  if (selected.release) selected.again();
  releaseAll([selected]);
}

async function releaseAll(chosen) {
  releasing = true;
  complain(null);
  const problems = [];
  for (const [done, photo] of chosen.entries()) {
    const text = chosen.length > 1 ? `Releasing ${done + 1} of ${chosen.length}…` : "Releasing…";
    progress(done, chosen.length, text);
    Object.assign(photo, { releasing: true, failure: null });
    show();
    try {
      await releasePhoto(photo, (part) => progress(part.done, part.of, `Releasing ${progressText(photo.media, part)}…`));
    } catch (error) {
      photo.failure = error.told ?? error.message;
      problems.push(`${photo.name}: ${photo.failure}`);
    }
    photo.releasing = false;
  }
  releasing = false;
  complain(problems.length ? { told: problems.join("\n") } : null);
  budget.forget();
  $("progress").hidden = true;
  show();
  if (selected?.release) $("result").focus();
  const told = released(chosen.length - problems.length, chosen.length);
  await asking;
  progress(1, 1, `${told}. ${budget.left()}`);
}

function released(done, all) {
  if (done < all) return `${done} of ${all} released`;
  return all === 1 ? "Released" : `${all} released`;
}

function progress(done, all, told) {
  $("progress").hidden = done === all;
  $("progress").max = all;
  $("progress").value = done;
  say(told);
}

function startDrawing(event) {
  if (stopDrawing) return stopDrawing();
  if (!selected?.size) return undefined;
  if (event.detail === 0) return addInTheMiddle();
  showDrawing(true);
  stopDrawing = drawing($("layer"), selected.size, (box) => {
    stopDrawing = null;
    showDrawing(false);
    if (box) act.add(box);
    else show();
  });
  return undefined;
}

function addInTheMiddle() {
  act.add(middle(selected.size));
  const boxes = $("stage").querySelectorAll(".spot.box");
  for (const box of boxes) if (box.dataset.key === `box-${selected.boxes.length - 1}`) box.focus();
}

function listenToDrops() {
  const over = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    $("drop").classList.toggle("over", event.type === "dragover");
  };
  for (const kind of ["dragover", "dragleave"]) document.addEventListener(kind, over);
  document.addEventListener("drop", (event) => {
    over(event);
    add(event.dataTransfer.files);
  });
}

async function start() {
  try {
    showOffers(await json("/page/offers"));
    $("key")?.removeAttribute("aria-invalid");
    complain(null);
    say("");
    budget.forgetCaller();
    show();
    replan();
  } catch (error) {
    const unknown = error.kind === "Unauthorised";
    if (unknown) $("key")?.setAttribute("aria-invalid", "true");
    const told = unknown ? UNKNOWN_KEY : error.told ?? String(error);
    complain({ told });
    showNoOffers(told, start);
  }
}

function chosen(other) {
  if (other) {
    for (const photo of photos) {
      photo.replaceAll(ANEW); // other ways may number faces otherwise
      photo.faceless = false; // and something else may be found
    }
  }
  replan();
}

function replan() {
  if (photos.length) planner.ask(...new Set([selected, ...photos]));
}

$("files").addEventListener("change", (event) => {
  add(event.target.files);
  event.target.value = "";
});
$("draw").addEventListener("click", startDrawing);
$("remove").addEventListener("click", removePhoto);
$("release").addEventListener("click", releaseSelected);
$("all").addEventListener("click", () => releaseAll(ready()));
$("key")?.addEventListener("change", (event) => {
  useKey(event.target.value);
  start();
});
budget.onPayer(() => {
  for (const photo of photos) if (!photo.release) photo.key = null; // somebody else's release is another one
  show();
});
onChoice(chosen);
listenToDrops();
watchPromise();
if ($("key")) say("Enter an API key first.");
else start();

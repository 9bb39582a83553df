// The page: photos come in, are planned, looked at, released and downloaded.

import { Problem, json, useKey } from "./api.mjs";
import { drawing, middle } from "./boxes.mjs";
import { $, complain, fill, make, say } from "./dom.mjs";
import { onChoice, settings, showOffers } from "./keep.mjs";
import { Photo } from "./photos.mjs";
import { archive, releasePhoto, showResult } from "./result.mjs";
import { showPromise } from "./said.mjs";
import { showStage } from "./stage.mjs";
import { Planner } from "./work.mjs";

const photos = [];
let selected = null;
let releasing = false;
let stopDrawing = null;

const planner = new Planner(settings, () => show());

const act = {
  toggle(number) {
    if (selected.kept.has(number)) selected.kept.delete(number);
    else selected.kept.add(number);
    planner.ask(selected);
  },
  add(box) {
    selected.boxes.push(box);
    planner.ask(selected);
  },
  move(at, box) {
    selected.boxes[at] = box;
    planner.ask(selected);
  },
  remove(at) {
    selected.boxes.splice(at, 1);
    planner.ask(selected);
    $("draw").focus();
  },
};

const STATES = [
  [(photo) => photo.release, "released"],
  [(photo) => planner.busy(photo), "waiting"],
  [(photo) => photo.problem, "needs a look"],
  [(photo) => photo.settings, "planned"],
  [() => true, "nothing replaced"],
];

const stateOf = (photo) => STATES.find(([holds]) => holds(photo))[1];
const ready = () => photos.filter((photo) => photo.ready && !planner.busy(photo));

function show() {
  fill($("photos"), ...photos.map(thumbnail));
  $("look").hidden = !selected;
  const waiting = selected !== null && planner.busy(selected);
  showPromise(selected, waiting);
  showResult(selected);
  if (selected) {
    $("look-title").textContent = selected.name;
    if (!stopDrawing) showStage(selected, act, show);
  }
  showRelease();
  for (const id of ["drop", "look", "settings"]) $(id).inert = releasing; // what is paid for was shown
  if ($("subject")) $("subject").disabled = releasing;
  const many = ready().length;
  $("all").hidden = photos.length < 2;
  $("all").disabled = releasing || !many;
  $("all").textContent = many > 1 ? `Release all ${many}` : "Release all";
  showZip();
}

function showRelease() {
  const again = selected?.release;
  const costs = again && !selected.planned.said.free ? ", at the same cost" : "";
  $("release").textContent = again ? `Release again${costs}` : "Release";
  $("release").disabled = releasing || !selected || !(again || ready().includes(selected));
}

function releaseSelected() {
  if (selected.release) selected.again();
  releaseAll([selected]);
}

function thumbnail(photo) {
  const state = stateOf(photo);
  const attributes = {
    type: "button", class: `thumb ${state.split(" ")[0]}`, "data-key": photo.id, onclick: () => select(photo),
    "aria-current": photo === selected ? "true" : null, "aria-label": `${photo.name}: ${state}`,
  };
  const image = make("img", { src: photo.url, alt: "" });
  return make("li", {}, make("button", attributes, image, make("span", { "aria-hidden": "true" }, state)));
}

function select(photo) {
  stopDrawing?.();
  selected = photo;
  planner.first(photo);
  complain(null);
  show();
}

function add(files) {
  const made = [...files].map((file) => new Photo(file));
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
  show();
  (selected ? $("look") : $("files")).focus();
}

async function releaseAll(chosen) {
  releasing = true;
  complain(null);
  const problems = [];
  for (const [done, photo] of chosen.entries()) {
    progress(done, chosen.length);
    show();
    try {
      await releasePhoto(photo);
    } catch (error) {
      problems.push(`${photo.name}: ${error.told ?? error.message}`);
    }
  }
  releasing = false;
  progress(chosen.length, chosen.length);
  const failed = problems.length;
  say(`${chosen.length - failed} of ${chosen.length} released.`);
  complain(failed ? { told: problems.join("\n") } : null);
  show();
  showBudget();
  if (selected?.release) $("result").focus();
}

function progress(done, all) {
  $("progress").hidden = done === all;
  $("progress").max = all;
  $("progress").value = done;
  if (done < all) say(all > 1 ? `Releasing ${done + 1} of ${all}…` : "Releasing…");
}

let zip = { of: "", url: "" };

async function showZip() {
  const done = photos.filter((photo) => photo.release);
  const of = done.map((photo) => photo.release.url).join(" ");
  const link = $("zip");
  link.hidden = done.length < 2 || releasing;
  if (link.hidden || zip.of === of) return;
  URL.revokeObjectURL(zip.url);
  zip = { of, url: "" };
  link.removeAttribute("href");
  try {
    const made = URL.createObjectURL(await archive(done));
    if (zip.of !== of) return URL.revokeObjectURL(made);
    zip.url = made;
    link.href = made;
    link.download = "releases.zip";
    link.textContent = `Download all ${done.length} (zip)`;
  } catch (error) {
    complain({ told: error.message });
  }
}

async function showBudget() {
  if (!$("budget")) return;
  const subject = $("subject").value.trim();
  const told = (text) => { $("budget").textContent = text; };
  try {
    const account = await json(`/page/budget?${new URLSearchParams({ subject })}`);
    told(account ? account.words : "A subject of the ledger.");
  } catch (error) {
    told(error.told ?? error.message);
  }
}

function startDrawing(event) {
  if (stopDrawing) return stopDrawing();
  if (!selected?.size) return undefined;
  if (event.detail === 0) return addInTheMiddle();
  $("draw").setAttribute("aria-pressed", "true");
  stopDrawing = drawing($("layer"), selected.size, (box) => {
    stopDrawing = null;
    $("draw").setAttribute("aria-pressed", "false");
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
    complain(null);
    say("");
    showBudget();
    replan();
  } catch (error) {
    complain(error instanceof Problem ? error : { told: String(error) });
  }
}

function chosen(other) {
  const reset = other && photos.some((photo) => photo.kept.size);
  if (reset) for (const photo of photos) photo.kept.clear(); // other ways may number faces otherwise
  say(reset ? "All faces are replaced again: choose anew which to keep." : "");
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
$("subject")?.addEventListener("change", () => {
  showBudget();
  replan();
});
onChoice(chosen);
listenToDrops();
if ($("key")) say("Enter an API key first.");
else start();

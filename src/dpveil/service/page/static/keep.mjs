// What replaces a region, and what is kept of each face: nothing, unless somebody chooses.

import { $, fill, make } from "./dom.mjs";

const CHOSEN = "=";

const WAYS = [
  { name: "faces", title: "Inner face only", words: "Forehead to chin: hair, ears and neck stay." },
  { name: "heads", title: "Whole head", words: "With hair, ears and neck: it hides more." },
  { name: "rendered", title: "A rendered face", words: "For any use, also in print: less like a photo." },
  { name: "fill", title: "A grey box", words: "For faces, and anything else that you frame.", settings: { method: "fill", level: 128 } },
];
const ALSO = { text: "Text", plates: "Number plates", codes: "QR and bar codes" };

let offers = { ways: [], also: [], caution: "" };

/** Show what the service offers. */
export function showOffers(told) {
  const offered = WAYS.filter(({ name, settings: own }) => own || told.ways[name]);
  offers = { ...told, ways: offered.map((way) => ({ attributes: [], ...way, ...told.ways[way.name] })) };
  const ways = offered.map((way, at) =>
    make("label", { class: "way" },
      make("input", { type: "radio", name: "way", value: way.name, checked: at === 0 }),
      make("span", {}, make("strong", {}, way.title), " ", make("small", {}, way.words))));
  fill($("ways"), make("legend", {}, "Replace with"), ...ways);
  $("ways").removeAttribute("aria-busy");
  const also = told.also.map((name) =>
    make("label", { class: "way" }, make("input", { type: "checkbox", name: "also", value: name }), make("span", {}, ALSO[name])));
  fill($("also"), make("legend", {}, "Replace, too"), make("div", {}, ...also));
  $("also").hidden = !also.length;
  $("caution").textContent = told.caution;
  showAttributes();
}

/** Call `changed` after each choice, with whether another way was chosen. */
export function onChoice(changed) {
  $("settings").addEventListener("change", (event) => {
    const other = event.target.name === "way" || event.target.name === "also";
    if (other) showAttributes();
    showKept();
    changed(other);
  });
  $("settings").addEventListener("submit", (event) => event.preventDefault());
}

/** Say why nothing can be chosen yet, with a button that tries again. */
export function showNoOffers(told, retry) {
  const again = make("button", { type: "button", onclick: retry }, "Try again");
  fill($("ways"), make("legend", {}, "Replace with"), make("p", { class: "problem" }, told), again);
}

/** Whether faces are drawn, so that a box may get one, too. */
export const draws = () => (way()?.attributes.length ?? 0) > 0;

function way() {
  const chosen = $("ways").querySelector("input:checked");
  return offers.ways.find(({ name }) => name === chosen?.value);
}

/** Return a select for one attribute, on which what was chosen before is chosen again. */
function row({ name, values, budgets, missing }, before) {
  const option = (value, text) => make("option", { value, selected: value === before }, text);
  const costs = budgets.map(({ epsilon, kept }) => option(epsilon, `ε ${epsilon}: right in ${kept}`));
  const shown = values.map((value) => option(CHOSEN + value, value));
  const select = make("select", { id: `keep-${name}`, name },
    option("", "not kept"),
    missing ? null : make("optgroup", { label: "keep, at a cost" }, ...costs),
    make("optgroup", { label: "always show" }, ...shown));
  return make("p", { class: "row", title: missing }, make("label", { for: `keep-${name}` }, name), select);
}

function showAttributes() {
  const rows = way()?.attributes ?? [];
  const before = Object.fromEntries(selects().map(({ name, value }) => [name, value]));
  fill($("attributes"), ...rows.map((attribute) => row(attribute, before[attribute.name])));
  $("keep").hidden = !rows.length;
}

const selects = () => [...$("attributes").querySelectorAll("select")];
const chosen = () => selects().filter(({ value }) => value);

function showKept() {
  $("kept").textContent = chosen().map(({ name }) => name).join(", ") || "nothing";
}

/** Return the settings that all photos share, and what else is replaced in `also`; null until the offers are there. */
export function settings() {
  const own = way();
  if (!own) return null;
  const kept = chosen().map(({ name, value }) => name + (value.startsWith(CHOSEN) ? value : `=${value}`));
  return {
    ...own.settings,
    ...(draws() ? { attributes: kept.join(",") || "none" } : {}),
    also: [...$("also").querySelectorAll("input:checked")].map(({ value }) => value),
  };
}

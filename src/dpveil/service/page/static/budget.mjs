// Who pays: what is left for them, and whether what was planned can be paid. The service computes all of it.

import { json } from "./api.mjs";
import { $, fill, make } from "./dom.mjs";

const WHO = "Whose budget pays: a person, an album, a data set.";

const NAMED = 5;
const TYPING = 300;
const RETRY = 5000;

let asked = "";
let account = null;
let edited = false;
let named = "";
let own = "";
let pending = null;

/** Return the subject that pays; empty where the service has no ledger, or nobody was named. */
export const payer = () => $("subject")?.value.trim() ?? "";

/** Return the subject with which photos are planned, which spends nothing: some keys have to name one. */
export const planner = () => payer() || own;

/** Return why a release at this price cannot be paid; empty if it can be, or that is unknown. */
export const problem = (price) => account?.problems[account.prices.indexOf(price)] ?? "";

/** Whether the answer about these prices is here, or none is needed. */
export const settled = () => !$("subject") || account !== null;

/** Return what is left, as a sentence; empty where nobody pays. */
export const left = () => (account?.left ? account.left.replace(/(?<![.?])$/u, ".") : "");

/** Whether nobody was named, and somebody can pay: then a name is asked for, and nothing is wrong. */
export const asksWho = () => !payer() && !account?.none;

/** Ask again, whatever was asked before: something was paid, or somebody else pays. */
export function forget() {
  asked = "";
}

/** Forget whose subjects these are: another key may spend others. */
export function forgetCaller() {
  own = "";
  if (named && !edited && payer() === named) $("subject").value = named = ""; // nobody typed it
  forget();
}

/** Ask about releases at these prices, if that was not asked last, and wait for it; calls `changed` then. */
export function ask(prices, changed) {
  if (!$("subject")) return pending;
  const query = new URLSearchParams({ subject: payer() });
  for (const price of prices) query.append("price", price);
  const mine = String(query);
  if (mine !== asked) {
    asked = mine;
    account = null;
    pending = answered(mine, prices, changed);
  }
  return pending;
}

async function answered(mine, prices, changed) {
  const told = await json(`/page/budget?${mine}`).catch((error) => unknown(error, prices));
  if (mine !== asked) return;
  account = { ...told, prices };
  own = told.own || own;
  show();
  changed();
}

/** Return an account that the service refuses to show; if it does not answer, a release can be tried. */
function unknown(error, prices) {
  if (!error.status) setTimeout(forget, RETRY);
  const problems = prices.map(() => (error.status ? error.told : ""));
  return { subject: "", subjects: [], none: error.told, own: "", left: "", problems };
}

function show() {
  const { subject, subjects, none, prices } = account;
  fill($("subjects"), ...subjects.map((name) => make("option", { value: name })));
  const sole = subject || (subjects.length === 1 ? subjects[0] : "");
  if (!payer() && !edited && sole) {
    $("subject").value = named = sole;
    if (!subject) forget();
  }
  const some = subjects.slice(0, NAMED).join(", ") + (subjects.length > NAMED ? "…" : ".");
  const others = subjects.length ? `These can pay: ${some}` : "";
  const nobody = prices.length ? "" : none; // else it is told as the reason why nothing is released
  $("budget").textContent = left() || nobody || `${WHO} ${others}`.trim();
}

/** Call `changed` when somebody else pays: while a name is typed, so that it is known when one releases. */
export function onPayer(changed) {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (payer() === named) return;
    named = payer();
    edited = true;
    changed();
  };
  $("subject")?.addEventListener("change", look);
  $("subject")?.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, TYPING);
  });
}

/**
 * Say beside the button why a photo cannot be released, first of all what is wrong with it. Red is what keeps
 * somebody from a release, and neither a question nor what follows from a success.
 */
export function showWhy(price, obstacle, again) {
  const paying = price ? problem(price) : "";
  const told = again ? paying.replace(/^This release/u, "Another release of it") : paying;
  $("why").classList.toggle("problem", Boolean(obstacle || (paying && !again && !asksWho())));
  $("why").textContent = [obstacle, told].filter(Boolean).join("\n");
}

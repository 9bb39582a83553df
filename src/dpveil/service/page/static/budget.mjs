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
let lately = [];
let pending = null;

/** Return the subject that pays; empty where the service has no ledger, or nobody was named. */
export const payer = () => $("subject")?.value.trim() ?? "";

/** Return the subject with which photos are planned, which spends nothing: some keys have to name one. */
export const planner = () => payer() || own;

/** Return what becomes of a release at this price: {problem, after, in_turn}; null while that is unknown. */
export function fate(price) {
  const at = account?.prices.indexOf(price) ?? -1;
  return at < 0 ? null : account.each[at];
}

/** Return for how many of the first releases that were asked about the budget lasts, one after another. */
export const lasting = (count) => account?.each.slice(0, count).map((each) => each.in_turn) ?? [];

/** Whether the answer about these prices is here, or none is needed. */
export const settled = () => !$("subject") || account !== null;

/** Return what is left, as a sentence; empty where nobody pays. */
export const left = () => (account?.left ? account.left.replace(/(?<![.?])$/u, ".") : "");

/** Return what the last releases cost together, as "for ε 2"; empty where nobody pays. */
export const paid = () => account?.paid ?? "";

/** Whether nobody was named, and somebody can pay: then a name is asked for, and nothing is wrong. */
export const asksWho = () => !payer() && !account?.none;

/** Ask again, whatever was asked before: releases at these prices were paid, or somebody else pays. */
export function forget(prices = lately) {
  asked = "";
  lately = prices;
}

/** Forget whose subjects these are: another key may spend others. */
export function forgetCaller() {
  own = "";
  if (named && !edited && payer() === named) $("subject").value = named = ""; // nobody typed it
  forget([]);
}

/** Ask about releases at these prices, if that was not asked last, and wait for it; calls `changed` then. */
export function ask(prices, changed) {
  if (!$("subject")) return pending;
  const query = new URLSearchParams({ subject: payer() });
  for (const price of prices) query.append("price", price);
  for (const price of lately) query.append("paid", price);
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
  const refused = { problem: error.status ? error.told : "", after: "" };
  const nobody = { subject: "", subjects: [], none: error.told, own: "", paid: "", left: "" };
  return { ...nobody, problem: error.told, each: prices.map(() => refused) };
}

function show() {
  const { subject, subjects, none, share, prices, each, problem = "" } = account;
  fill($("subjects"), ...subjects.map((name) => make("option", { value: name })));
  const sole = subject || (subjects.length === 1 ? subjects[0] : "");
  if (!payer() && !edited && sole) {
    $("subject").value = named = sole;
    if (!subject) forget();
  }
  $("meter").hidden = !subject;
  $("meter").firstElementChild.style.width = `${100 * (share ?? 0)}%`;
  const some = subjects.slice(0, NAMED).join(", ") + (subjects.length > NAMED ? "…" : ".");
  const others = subjects.length ? `These can pay: ${some}` : "";
  const nobody = prices.length ? "" : none; // else it is told as the reason why nothing is released
  const refused = each.length && each.every((one) => one.problem);
  const mine = left() && `${left()} ${refused ? others : ""}`;
  $("budget").textContent = (mine || problem || nobody || `${WHO} ${others}`).trim();
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

// Whether a release can be paid, beside the button that makes it.

import * as budget from "./budget.mjs";
import { $ } from "./dom.mjs";

/** Say why the photo that is looked at cannot be released, and below that why nothing else can be paid. */
export function showObstacle(reason) {
  const paying = $("why").classList.contains("problem") ? `\n${$("why").textContent}` : "";
  $("why").classList.add("problem");
  $("why").textContent = reason + paying;
}

/**
 * Say what a release leaves, or why it cannot be paid; `name` is of the photo, if it is not the one that is
 * looked at, and `again` whether that is released already. Red is what keeps somebody from a release, and
 * neither a question nor what follows from a success.
 */
export function showWhy(fate, name = "", again = false) {
  const problem = fate?.problem ?? "";
  const stops = problem && !again && !budget.asksWho();
  $("why").classList.toggle("problem", Boolean(stops));
  $("why").textContent = problem ? told(problem, name, again) : after(fate, again);
}

function told(problem, name, again) {
  if (again) return problem.replace(/^This release/u, "Another release of it");
  return name ? problem.replace(/^This release/u, `The release of ${name}`) : problem;
}

function after(fate, again) {
  if (!fate?.after || `${fate.after}.` === budget.left()) return "";
  return `After ${again ? "another" : "this"} release ${fate.after}.`;
}

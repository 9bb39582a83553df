// The chosen photos in small, each with how far it is.

import { make } from "./dom.mjs";

const STATES = [
  [(photo) => photo.releasing, "releasing…"],
  [(photo) => photo.failure, "not released"],
  [(photo) => photo.release?.reviewed, "reviewed"],
  [(photo) => photo.release, "released"],
  [(photo, planner) => planner.current === photo, "looking…"],
  [(photo, planner) => planner.busy(photo), "waiting"],
  [(photo) => photo.problem || (photo.faceless && !photo.boxes.length), "needs a look"],
  [(photo) => photo.settings, "ready"],
  [() => true, "nothing replaced"],
];

/** Return how far a photo is, in two words. */
export const stateOf = (photo, planner) => STATES.find(([holds]) => holds(photo, planner))[1];

/** Return the button of a photo; `shown` says whether it is the one that is looked at. */
export function thumbnail(photo, planner, shown, onclick) {
  const state = stateOf(photo, planner);
  const attributes = {
    type: "button", class: `thumb ${state.split(/[ …]/u)[0]}`, "data-key": photo.id, onclick,
    "aria-current": shown ? "true" : null, "aria-label": `${photo.name}: ${state}`,
  };
  const picture = photo.visible
    ? make("img", { src: photo.url, alt: "" })
    : make("span", { class: "blank", "aria-hidden": "true" }, photo.media?.name ?? (photo.visible === false ? "?" : ""));
  const told = make("span", { "aria-hidden": "true" }, state);
  return make("li", {}, make("button", attributes, picture, told));
}

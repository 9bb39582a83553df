// The photos of this tab, and what is asked of the service for each.

import { forget, mediaOf, planOf } from "./media.mjs";

let numbers = 0;

/** One photo: its file, the choices about it, its plan, and its release; calls `changed` once it is seen. */
export class Photo {
  constructor(file, changed) {
    numbers += 1;
    this.id = `photo-${numbers}`;
    this.file = file;
    this.name = file.name || "photo";
    this.media = mediaOf(file); // undefined for photos
    this.url = URL.createObjectURL(file);
    this.visible = null; // null until the browser has tried to show it
    this.kept = new Set();
    this.note = ""; // what was changed without being asked for
    this.boxes = [];
    this.faces = new Map();
    this.faceless = false;
    this.size = null;
    this.planned = null;
    this.done = {}; // how much of a document or clip was looked at
    this.settings = null;
    this.problem = null;
    this.release = null;
    this.releasing = false;
    this.failure = null;
    this.key = null;
    this.look(changed);
  }

  /** Let the browser try to show it, which also tells the size of one that has no plan yet. */
  async look(changed) {
    if (this.media) {
      this.visible = false;
      return;
    }
    const image = new Image();
    image.src = this.url;
    this.visible = await image.decode().then(() => true, () => false);
    if (this.visible) this.size ??= [image.naturalWidth, image.naturalHeight];
    changed();
  }

  /** Whether every face that is known is kept. */
  get allKept() {
    return this.faces.size > 0 && [...this.faces.keys()].every((number) => this.kept.has(number));
  }

  /** Keep no face any more; `told` says so, if one was kept. */
  replaceAll(told) {
    if (this.kept.size) this.note = told;
    this.kept.clear();
  }

  /** The settings of a request; null if nothing would be replaced. */
  wanted({ also, ...common }) {
    const faces = !this.faceless && !this.allKept;
    const others = this.faceless ? [] : also; // nothing of any kind was found
    const boxes = this.boxes.map(({ box, face }) => `${face ? "" : "object:"}${box.join(",")}`);
    const regions = [...(faces ? ["faces"] : []), ...others, ...boxes];
    if (!regions.length) return null;
    const kept = [...this.kept].sort((one, other) => one - other).join(",");
    const more = others.length ? { if_none: "others" } : {};
    return { ...common, regions, ...more, ...(faces && kept ? { except: kept } : {}) };
  }

  /** Forget the plan and the release: something was changed. */
  stale() {
    this.settings = null;
    this.again();
  }

  /** Let the next release be another draw. */
  again() {
    this.key = null;
    this.failure = null;
    this.forget();
  }

  /** Forget the release. */
  forget() {
    if (this.release) URL.revokeObjectURL(this.release.url);
    forget(this.release);
    this.release = null;
  }

  /** Take what the service planned for these settings. */
  take(planned, settings) {
    if (this.media) return void this.takeMedia(planned, settings);
    this.planned = planned;
    this.size = planned.size;
    this.settings = settings;
    this.problem = null;
    if (!settings.regions.includes("faces")) return;
    const shown = planned.plan.regions.map((region, at) => ({
      ...region.origin,
      box: region.box,
      outline: planned.outlines[at],
    }));
    const faces = shown.filter((region) => region.kind === "face" && region.number);
    this.faces = new Map([...faces, ...planned.kept].map((face) => [face.number, face]));
  }

  /** Take what the service saw in a document or clip with these settings. */
  takeMedia(told, settings) {
    const planned = planOf(told, this.faces);
    planned.choosable = settings.regions.length === 1; // of faces alone: else what is found is numbered together
    forget(this.planned, planned);
    Object.assign(this, { planned, settings, problem: null });
    this.faces = new Map((planned.tracks ?? []).map((track) => [track.number, track]));
  }

  /** Whether what is shown is what a release would be. */
  get ready() {
    return this.settings !== null && this.problem === null && this.release === null;
  }

  /** What a release as it is planned costs, as the service wrote it; empty if nothing is planned. */
  get price() {
    return this.settings === null ? "" : this.planned.said.price;
  }

  /** Give its memory back. */
  close() {
    this.forget();
    forget(this.planned);
    URL.revokeObjectURL(this.url);
  }
}

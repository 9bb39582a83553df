// Plans, made one after another: the photo that is looked at comes first, and what is outdated is dropped.

import { Problem } from "./api.mjs";

const DELAY = 250;
const RETRY = 3000;

/**
 * Makes the plans of photos: `common` returns their settings, `make` asks the service for one, and `changed`
 * is called after each step.
 */
export class Planner {
  constructor(common, make, changed) {
    this.make = make;
    this.common = common;
    this.changed = changed;
    this.waiting = [];
    this.current = null;
    this.abort = null;
    this.silent = false; // whether the service did not answer at all when it was asked last
    this.timer = 0;
  }

  /** Whether a photo waits for its plan. */
  busy(photo) {
    return this.current === photo || this.waiting.includes(photo);
  }

  /** Plan photos anew, the first one first; what is being planned for them now is dropped. */
  ask(...photos) {
    for (const photo of photos) {
      photo.stale();
      photo.problem = null;
    }
    this.waiting = [...photos, ...this.waiting.filter((photo) => !photos.includes(photo))];
    if (photos.includes(this.current)) this.abort.abort();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.next(), DELAY);
    this.changed();
  }

  /** Drop a photo. */
  drop(photo) {
    this.waiting = this.waiting.filter((other) => other !== photo);
    if (!this.waiting.length) this.silent = false;
    if (this.current === photo) this.abort.abort();
  }

  /** Let a photo be the next one. */
  first(photo) {
    if (!this.waiting.includes(photo)) return;
    this.waiting = [photo, ...this.waiting.filter((other) => other !== photo)];
  }

  async next() {
    if (this.current || !this.waiting.length) return;
    const common = this.common();
    if (!common) return;
    const photo = this.waiting.shift();
    const settings = photo.wanted(common);
    if (settings) {
      this.current = photo;
      this.abort = new AbortController();
      this.changed();
      await this.plan(photo, settings, this.abort.signal);
      this.current = null;
    }
    this.changed();
    if (this.silent) this.timer = setTimeout(() => this.next(), RETRY);
    else this.next();
  }

  async plan(photo, settings, signal) {
    try {
      const planned = await this.make(photo, settings, signal);
      this.silent = false;
      if (!signal.aborted) photo.take(planned, settings);
    } catch (error) {
      if (signal.aborted) return;
      this.silent = error instanceof Problem && !error.status;
      if (this.silent) {
        this.waiting.unshift(photo); // it is asked about again until there is an answer
        return;
      }
      photo.problem = error instanceof Problem ? error : new Problem({ title: String(error.message) });
      const bare = photo.problem.kind === "NoRegion" && !photo.kept.size;
      if (!bare) return;
      photo.faceless = true;
      if (photo.boxes.length) this.waiting.unshift(photo);
    }
  }
}

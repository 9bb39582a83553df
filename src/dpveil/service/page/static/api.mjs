// Requests to the service that served this page, and its problems as errors.

const PATIENCE = 8;
const LONGEST_WAIT = 30;
const POLL = 1000;

let key = "";

/** Use an API key from now on; it is kept in this variable alone. */
export function useKey(text) {
  key = text.trim();
}

/** What the service says went wrong (RFC 9457). */
export class Problem extends Error {
  constructor({ title, hint = "", type = "", status = 0 }) {
    super(title);
    this.title = title;
    this.hint = hint;
    this.kind = String(type).split(":").pop();
    this.status = status;
  }

  /** The problem and the remedy in one sentence. */
  get told() {
    return this.hint ? `${this.title}: ${this.hint}` : this.title;
  }
}

async function problemOf(answer) {
  const unknown = { title: `the service answered with ${answer.status}`, status: answer.status };
  try {
    const told = await answer.json();
    return new Problem(typeof told.title === "string" ? { ...told, status: answer.status } : unknown);
  } catch {
    return new Problem(unknown);
  }
}

const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** Fetch an address; a service that is busy is asked again. Raises `Problem`. */
async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  for (let attempt = 1; ; attempt += 1) {
    let answer;
    try {
      answer = await fetch(path, { ...options, headers, credentials: "omit", redirect: "error" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem({ title: "the service does not answer", hint: "is dpveil serve still running?" });
    }
    if (answer.ok) return answer;
    const after = Number(answer.headers.get("retry-after"));
    const busy = answer.status === 429 || answer.status === 503;
    if (!busy || !(after > 0) || attempt === PATIENCE) throw await problemOf(answer);
    await pause(Math.min(after, LONGEST_WAIT));
    options.signal?.throwIfAborted();
  }
}

/** Return the parts of an upload; the name of the file stays here. */
function form(photo, settings) {
  const body = new FormData();
  body.append("photo", photo, "photo");
  body.append("settings", JSON.stringify(settings));
  return body;
}

/** Return a JSON answer. */
export const json = async (path, options) => (await ask(path, options)).json();

/** Return an answer as a blob. */
export const blob = async (path) => (await ask(path)).blob();

/** Return what a release would promise, with outlines and sentences. */
export const plan = (photo, settings, signal) =>
  json("/page/plan", { method: "POST", body: form(photo, settings), signal });

/**
 * Return what is in a document or clip, and what a release would promise; `heard` is called with how much of it
 * was looked at.
 */
export async function look(file, settings, signal, heard) {
  const answer = await ask("/page/media", { method: "POST", body: form(file, settings), signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let [told, text] = [{}, ""];
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (text + part.value).split("\n");
    text = lines.pop();
    for (const line of lines) {
      told = JSON.parse(line);
      if (told.progress) heard(told.progress);
    }
  }
  if (told.problem) throw new Problem(told.problem);
  if (told.progress) throw new Problem({ title: "the service broke off", hint: "try again" });
  return told;
}

/**
 * Return a release, however long it takes; a retry with the same key gets the same one. `heard` is called with
 * how much of a document or clip is done.
 */
export async function release(photo, settings, idempotencyKey, heard) {
  const headers = { "idempotency-key": idempotencyKey };
  let told = await json("/v1/releases", { method: "POST", body: form(photo, settings), headers });
  while (told.status === "working") {
    await pause(POLL / 1000);
    told = await json(told.job_url);
    if (told.progress) heard(told.progress);
  }
  if (told.status === "failed") throw new Problem(told.problem);
  return told.release_url ? json(told.release_url) : told;
}

/** Return a new word for a release. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

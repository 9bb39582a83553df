// Boxes by hand: drawn with mouse, pen or finger, and moved with the keyboard. All in pixels of the photo.

import { $, draw } from "./dom.mjs";

const LEAST = 8;
const STEPS = 50;

const within = (value, low, high) => Math.min(Math.max(value, low), high);

/** Return the box between two points, within a photo of this size. */
export function between([x, y], [u, v], [width, height]) {
  const [left, right] = [x, u].map((at) => within(Math.round(at), 0, width)).sort((a, b) => a - b);
  const [top, below] = [y, v].map((at) => within(Math.round(at), 0, height)).sort((a, b) => a - b);
  return [left, top, right - left, below - top];
}

/** Return a box in the middle, a quarter of the photo wide. */
export function middle([width, height]) {
  const [w, h] = [width, height].map((size) => Math.max(1, Math.round(size / 4)));
  return [Math.round((width - w) / 2), Math.round((height - h) / 2), w, h];
}

/** Return a box after an arrow key: moved, or with Shift another size; null for another key. */
export function moved([x, y, w, h], key, shift, [width, height]) {
  const step = Math.max(1, Math.round(Math.max(width, height) / STEPS));
  const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[key];
  if (!by) return null;
  const sized = (size, add, least, most) => within(size + add, Math.min(LEAST, least), most);
  if (shift) return [x, y, sized(w, by[0], width, width - x), sized(h, by[1], height, height - y)];
  return [within(x + by[0], 0, width - w), within(y + by[1], 0, height - h), w, h];
}

/** Show whether a box is being drawn, and how. */
export function showDrawing(now) {
  $("draw").setAttribute("aria-pressed", String(now));
  $("look-help").hidden = now;
  $("drag-help").hidden = !now;
}

/** Let one box be drawn over an SVG of this size in pixels; calls `done` with it, or with null. */
export function drawing(layer, size, done) {
  const rubber = draw("rect", { class: "rubber" });
  let start = null;
  const at = (event) => {
    const seen = layer.getBoundingClientRect();
    return [
      ((event.clientX - seen.left) * size[0]) / seen.width,
      ((event.clientY - seen.top) * size[1]) / seen.height,
    ];
  };
  const listeners = {
    pointerdown(event) {
      if (!event.isPrimary || event.button > 0) return;
      event.preventDefault();
      layer.setPointerCapture(event.pointerId);
      start = at(event);
      layer.append(rubber);
    },
    pointermove(event) {
      if (!start) return;
      const [x, y, width, height] = between(start, at(event), size);
      for (const [name, value] of Object.entries({ x, y, width, height })) rubber.setAttribute(name, value);
    },
    pointerup(event) {
      if (!start) return;
      const box = between(start, at(event), size);
      end(box[2] >= LEAST && box[3] >= LEAST ? box : null);
    },
    pointercancel: () => end(null),
  };
  const escape = (event) => event.key === "Escape" && end(null);
  function end(box) {
    for (const [name, listener] of Object.entries(listeners)) layer.removeEventListener(name, listener);
    document.removeEventListener("keydown", escape);
    layer.classList.remove("drawing");
    rubber.remove();
    done(box);
  }
  for (const [name, listener] of Object.entries(listeners)) layer.addEventListener(name, listener);
  document.addEventListener("keydown", escape);
  layer.classList.add("drawing");
  return () => end(null);
}

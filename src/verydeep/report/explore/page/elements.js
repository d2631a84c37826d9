// Small helpers for elements and text. Names from the data only ever become text, never markup.

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const minus = (text) => text.replace("-", "−");
const percent = (share, digits = 1) => (Number.isFinite(share) ? minus(`${(100 * share).toFixed(digits)}%`) : "–");
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const LONGEST = 80; // letters of a name in a sentence
const sum = (values) => values.reduce((total, value) => total + value, 0);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

// A number in its units, with as many digits as one reads.
function inUnits(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(size)) return "–";
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return minus(value.toExponential(2));
  return minus(String(Number(value.toPrecision(size >= 1000 ? 5 : 4))));
}

function softmax(logits) {
  const most = Math.max(...logits), powers = Array.from(logits, (value) => Math.exp(value - most)), total = sum(powers);
  return powers.map((power) => power / total);
}

// What outputs of the network mean: probabilities, or numbers in their original units.
function read(logits) {
  const { kind, mean, deviation } = store.task;
  if (kind === "classification") return softmax(logits);
  if (kind === "multilabel") return Array.from(logits, sigmoid);
  return Array.from(logits, (value, at) => value * deviation[at] + mean[at]);
}

// An image of the data on a canvas of its own size.
function paintImage(canvas, pixels) {
  const [channels, height, width] = store.inputs.shape, { black, white } = store.inputs, area = height * width;
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
  for (let i = 0; i < area; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = 255 * (pixels[(channels === 3 ? c : 0) * area + i] - black) / (white - black || 1);
    image.data[4 * i + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

// The page's data, and how values become colours and text.
const store = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print"); // printed on white, whatever the theme of the screen
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const colourMaps = Object.fromEntries(Object.entries(store.colour_maps).map(([name, text]) => [name, bytes(text)]));
const decoded = new Map(); // two canvases may show pages of one map

function colourMap(map) {
  return colourMaps[map.kind === "diverging" && dark.matches && !paper.matches ? "diverging-dark" : map.kind];
}

function place(map, value) { // the position on the colour bar, from 0 to 1
  const share = (value - map.low) / (map.high - map.low || 1);
  return Math.pow(Math.min(Math.max(share, 0), 1), map.power);
}

function valueAt(map, share) {
  return map.low + Math.pow(share, 1 / map.power) * (map.high - map.low);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function say(value, percent) {
  if (value === null || Number.isNaN(value)) return "none";
  const number = percent ? value * 100 : value;
  const text = number === 0 ? "0" : Math.abs(number) >= 1e-3 ? String(Number(number.toPrecision(4))) : number.toExponential(2);
  return text.replace("-", "−") + (percent ? "%" : "");
}

function decode(id) {
  if (!decoded.has(id)) {
    const map = store.maps[id];
    decoded.set(id, {
      values: new Float32Array(bytes(map.values).buffer), // little-endian, as every browser's machine is
      noise: map.noise ? bytes(map.noise) : null,
    });
  }
  return decoded.get(id);
}

// At most `most` round numbers between two ends.
function ticks(low, high, most) {
  const raw = (high - low) / most || 1;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(Number((n * step).toPrecision(12)));
  return found;
}

function canvasFor(element) { // drawn at the screen's resolution, in CSS pixels
  const scale = Math.max(devicePixelRatio || 1, 2), { width, height } = element.getBoundingClientRect();
  element.width = Math.round(width * scale);
  element.height = Math.round(height * scale);
  const pen = element.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  return [pen, width, height];
}

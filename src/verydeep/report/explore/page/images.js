// Brings drawings and photographs into the form of the training images.

// One axis of a resize: every output value is a weighted mean of the input under a triangle, as Pillow's BILINEAR does.
function resizeAxis(values, lines, from, to, out) {
  const scale = from / to, support = Math.max(scale, 1);
  for (let at = 0; at < to; at++) {
    const centre = (at + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - support + 0.5), 0), last = Math.min(Math.trunc(centre + support + 0.5), from);
    const weights = [];
    for (let i = first; i < last; i++) weights.push(Math.max(0, 1 - Math.abs((i + 0.5 - centre) / support)));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    for (let line = 0; line < lines; line++) {
      let sum = 0;
      for (let i = first; i < last; i++) sum += weights[i - first] * values[line * from + i];
      out[at * lines + line] = Math.round(sum / total); // rows become columns, so that two passes do both axes
    }
  }
}

// Resize one channel of bytes.
function resize(values, [height, width], [toHeight, toWidth]) {
  const across = new Float64Array(toWidth * height), both = new Float64Array(toHeight * toWidth);
  resizeAxis(values, height, width, toWidth, across);
  resizeAxis(across, toWidth, height, toHeight, both);
  return both;
}

// Red, green, blue and alpha as the channels of the network, blended into white and resized.
function fromPhotograph(rgba, size, { shape, black, white, bytes }, invert) {
  const [channels, height, width] = shape, count = size[0] * size[1];
  const planes = [0, 1, 2].map((channel) => {
    const plane = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const alpha = rgba[4 * i + 3] / 255;
      plane[i] = Math.round(rgba[4 * i + channel] * alpha + 255 * (1 - alpha));
    }
    return plane;
  });
  const grey = () => planes[0].map((red, i) => Math.round(0.299 * red + 0.587 * planes[1][i] + 0.114 * planes[2][i]));
  const used = channels === 3 ? planes : [grey()];
  const pixels = used.flatMap((plane) => [...resize(plane, size, [height, width])]);
  const level = (value) => black + (invert ? 255 - value : value) / 255 * (white - black);
  return Float32Array.from(pixels, (value) => (bytes ? Math.round(level(value)) : level(value)));
}

// The box around the ink, its centre of mass, or null if there is none. Ink is a square of values from 0 to 1.
function measureInk(ink, side) {
  const box = { top: side, left: side, bottom: 0, right: 0, y: 0, x: 0 };
  let total = 0;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const value = ink[y * side + x];
      if (value < 0.1) continue;
      Object.assign(box, { top: Math.min(box.top, y), left: Math.min(box.left, x), bottom: Math.max(box.bottom, y + 1), right: Math.max(box.right, x + 1) });
      total += value;
      box.y += value * (y + 0.5);
      box.x += value * (x + 0.5);
    }
  }
  return total === 0 ? null : { ...box, y: box.y / total, x: box.x / total };
}

// A drawing placed like the training images: as large, and with its centre of mass where theirs is. This is how MNIST
// was made: scaled to 20 of 28 pixels, and centred by mass.
function placeInk(ink, side, inputs) {
  const [, height, width] = inputs.shape, box = measureInk(ink, side), placed = new Float32Array(height * width);
  if (box !== null) {
    const { size, centre } = inputs.ink;
    const scale = Math.min(size * height / (box.bottom - box.top), size * width / (box.right - box.left));
    const start = (at, from, to, whole) => { // where the first row or column of the drawing goes; all ink stays inside
      const wanted = at - scale * from, least = -scale * to.low, most = whole - scale * to.high;
      return least > most ? (least + most) / 2 : Math.min(Math.max(wanted, least), most);
    };
    const top = start(centre[0] * height, box.y, { low: box.top, high: box.bottom }, height);
    const left = start(centre[1] * width, box.x, { low: box.left, high: box.right }, width);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) placed[y * width + x] = meanOver(ink, side, (y - top) / scale, (y + 1 - top) / scale, (x - left) / scale, (x + 1 - left) / scale);
    }
  }
  const { black, white, bytes } = inputs, dark = inputs.ink.dark;
  return placed.map((value) => {
    const level = black + (dark ? 1 - value : value) * (white - black);
    return bytes ? Math.round(level) : level;
  });
}

// The mean of a square of values over a rectangle, whose edges may lie between them.
function meanOver(values, side, top, bottom, left, right) {
  let sum = 0;
  for (let y = Math.max(Math.floor(top), 0); y < Math.min(bottom, side); y++) {
    const high = Math.min(y + 1, bottom) - Math.max(y, top);
    for (let x = Math.max(Math.floor(left), 0); x < Math.min(right, side); x++) {
      sum += values[y * side + x] * high * (Math.min(x + 1, right) - Math.max(x, left));
    }
  }
  return sum / ((bottom - top) * (right - left));
}

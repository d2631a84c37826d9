// Prepares raw values for the network as the run prepared its training data.

function fromBase64(text, Kind = Uint8Array) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer); // little-endian, as every browser's machine is
}

// float16 as float32, by a table of all 65,536 values.
function fromHalf(halves) {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits & 32768 ? -1 : 1;
    const size = exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity) : (1024 + fraction) * 2 ** (exponent - 25);
    table[bits] = sign * size;
  }
  return Float32Array.from(halves, (bits) => table[bits]);
}

// Weights that are stored as a byte each, with a scale for every 64 of them.
function fromBytes({ weights, scales }) {
  const factors = fromHalf(fromBase64(scales, Uint16Array));
  return Float32Array.from(fromBase64(weights, Int8Array), (multiple, at) => multiple * factors[at >> 6]);
}

class Preparation {
  // inputs: the description of raw samples and of their preparation.
  constructor(inputs) {
    this.inputs = inputs;
    this.isImage = inputs.kind === "image";
    this.ready = inputs.prepared ? fromBase64(inputs.prepared, Float32Array) : null;
    if (this.isImage) {
      this.size = inputs.shape.reduce((product, side) => product * side, 1);
      this.pixels = fromBase64(inputs.pixels, inputs.bytes ? Uint8Array : Float32Array);
      this.mean = fromBase64(inputs.mean, Float64Array);
      this.deviation = fromBase64(inputs.deviation, Float64Array);
    }
  }

  // A sample of the page as it was read: pixels, or the cells of a row.
  raw(number) {
    if (!this.isImage) return this.inputs.rows[number];
    return this.pixels.subarray(number * this.size, (number + 1) * this.size);
  }

  // A sample of the page as the network sees it.
  sample(number, count) {
    if (this.ready === null) return this.prepare(this.raw(number));
    const size = this.ready.length / count;
    return this.ready.subarray(number * size, (number + 1) * size);
  }

  prepare(raw) {
    return this.isImage ? this.image(raw) : this.row(raw);
  }

  image(pixels) {
    const { full, contrast, factor } = this.inputs;
    let x = Float64Array.from(pixels);
    if (full !== null) x = x.map((value) => Math.fround(value / full));
    if (contrast) {
      const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
      const deviation = Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length);
      x = x.map((value) => (value - mean) / (deviation > 1e-6 ? deviation : 1));
    }
    if (factor !== null) x = x.map((value) => value * factor);
    if (this.mean.length) x = x.map((value, at) => value - this.mean[at]);
    if (this.deviation.length) x = x.map((value, at) => value / this.deviation[at]);
    return Float32Array.from(x);
  }

  row(cells) {
    return Float32Array.from(this.inputs.columns.flatMap((column, at) => this.features(column, cells[at])));
  }

  // The features of a cell; null is a missing value, which is filled in.
  features(column, cell) {
    const isMissing = cell === null, value = isMissing ? column.fill : cell;
    const missing = column.gaps ? [isMissing ? 1 : 0] : [];
    if (column.kind === "category") return [...column.values.map((known) => (known === value ? 1 : 0)), ...missing];
    const waves = (column.periods ?? []).flatMap((period) => {
      const angle = 2 * Math.PI * value / period;
      return [Math.sin(angle), Math.cos(angle)];
    });
    return [(value - column.mean) / column.deviation, ...waves, ...missing];
  }
}

// Runs a network. A sample is a Float32Array, feature maps after one another; sums are computed in double precision.

// The error function: its series near 0, elsewhere a continued fraction of the complement.
function erf(x) {
  const size = Math.abs(x);
  if (size > 5.9) return Math.sign(x);
  if (size < 2.5) {
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return sum * 2 / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / (size + fraction));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const softplus = (x) => (x > 20 ? x : Math.log1p(Math.exp(x)));

// Of single values; lwta and maxout, which compare neighbours, are in `activate`.
const ACTIVATIONS = {
  elu: (x) => (x > 0 ? x : Math.expm1(x)),
  gelu: (x) => x * 0.5 * (1 + erf(x / Math.SQRT2)),
  hardsigmoid: (x) => Math.min(Math.max(x + 3, 0), 6) / 6,
  identity: (x) => x,
  leaky_relu: (x) => (x > 0 ? x : 0.01 * x),
  mish: (x) => x * Math.tanh(softplus(x)),
  relu: (x) => (x > 0 ? x : 0),
  relu6: (x) => Math.min(Math.max(x, 0), 6),
  sigmoid,
  silu: (x) => x * sigmoid(x),
  softplus,
  tanh: Math.tanh,
};

// `rows` sums of products of `columns` weights with every row of x, plus a bias: out[row * count + n].
function multiply(x, count, weights, at, biasAt, rows, columns, out) {
  let row = 0;
  for (; row + 4 <= rows; row += 4) {
    const w0 = at + row * columns, w1 = w0 + columns, w2 = w1 + columns, w3 = w2 + columns;
    for (let n = 0; n < count; n++) {
      const start = n * columns;
      let a = weights[biasAt + row], b = weights[biasAt + row + 1];
      let c = weights[biasAt + row + 2], d = weights[biasAt + row + 3];
      for (let k = 0; k < columns; k++) {
        const value = x[start + k];
        a += weights[w0 + k] * value;
        b += weights[w1 + k] * value;
        c += weights[w2 + k] * value;
        d += weights[w3 + k] * value;
      }
      out[row * count + n] = a;
      out[(row + 1) * count + n] = b;
      out[(row + 2) * count + n] = c;
      out[(row + 3) * count + n] = d;
    }
  }
  for (; row < rows; row++) {
    for (let n = 0; n < count; n++) {
      let sum = weights[biasAt + row];
      for (let k = 0; k < columns; k++) sum += weights[at + row * columns + k] * x[n * columns + k];
      out[row * count + n] = sum;
    }
  }
}

// What each position of the output sees of the input, `(position, channel * kernel * kernel)`.
function patches(step, x) {
  const [channels, height, width] = step.in, { kernel, stride, padding } = step;
  const [, rows, columns] = step.out, size = channels * kernel * kernel;
  if (kernel === 1 && stride === 1 && padding === 0 && height * width === 1) return x;
  const seen = new Float32Array(rows * columns * size);
  let to = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const top = row * stride - padding, left = column * stride - padding;
      for (let channel = 0; channel < channels; channel++) {
        for (let y = top; y < top + kernel; y++) {
          const line = (channel * height + y) * width;
          for (let at = left; at < left + kernel; at++, to++) {
            if (y >= 0 && y < height && at >= 0 && at < width) seen[to] = x[line + at];
          }
        }
      }
    }
  }
  return seen;
}

// The affine maps of a layer, `maps` times as many as its outputs.
function affineMaps(step, weights, x, maps) {
  const flat = step.kernel === undefined;
  const positions = flat ? 1 : step.out[1] * step.out[2];
  const columns = flat ? step.in[0] : step.in[0] * step.kernel * step.kernel;
  const rows = step.out[0] * maps, out = new Float32Array(rows * positions);
  multiply(flat ? x : patches(step, x), positions, weights, step.weight, step.bias, rows, columns, out);
  return out;
}

// Activate `units` units, each with the same number of positions.
function activate(name, z, units, pieces) {
  if (name === "maxout") {
    const positions = z.length / (units * pieces), out = new Float32Array(units * positions).fill(-Infinity);
    for (let at = 0; at < z.length; at++) {
      const to = Math.floor(at / (pieces * positions)) * positions + (at % positions);
      if (!(z[at] <= out[to])) out[to] = z[at];
    }
    return out;
  }
  if (name === "lwta") {
    return z.map((value, at) => (value === Math.max(value, z[at ^ 1]) ? value : 0));
  }
  return z.map(ACTIVATIONS[name]);
}

const OPERATIONS = {
  affine(step, weights, x) {
    const z = affineMaps(step, weights, x, step.pieces);
    return { output: activate(step.activation, z, step.out[0], step.pieces), gate: null };
  },

  residual(step, weights, x) {
    const { output } = OPERATIONS.affine(step, weights, x);
    return { output: output.map((value, at) => x[at] + value), gate: null };
  },

  highway(step, weights, x) {
    const independent = step.carry === "independent";
    const z = affineMaps(step, weights, x, step.pieces + 1 + independent), size = x.length;
    const h = activate(step.activation, z.subarray(0, step.pieces * size), step.out[0], step.pieces);
    const gateAt = step.pieces * size, gate = z.slice(gateAt, gateAt + size).map(sigmoid);
    const output = new Float32Array(size);
    for (let at = 0; at < size; at++) {
      const carry = independent ? sigmoid(z[gateAt + size + at]) : 1 - gate[at];
      output[at] = h[at] * gate[at] + x[at] * carry;
    }
    return { output, gate };
  },

  pool(step, _weights, x) {
    const [channels, height, width] = step.in, [, rows, columns] = step.out, isMax = step.how === "max";
    const output = new Float32Array(channels * rows * columns);
    for (let channel = 0, to = 0; channel < channels; channel++) {
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++, to++) {
          const top = row * step.stride[0], left = column * step.stride[1];
          const bottom = Math.min(top + step.size[0], height), right = Math.min(left + step.size[1], width);
          let found = isMax ? -Infinity : 0;
          for (let y = top; y < bottom; y++) {
            for (let at = left; at < right; at++) {
              const value = x[(channel * height + y) * width + at];
              found = isMax ? (value <= found ? found : value) : found + value;
            }
          }
          output[to] = isMax ? found : found / ((bottom - top) * (right - left));
        }
      }
    }
    return { output, gate: null };
  },
};
OPERATIONS.conv = OPERATIONS.affine;
OPERATIONS["highway-conv"] = OPERATIONS.highway;

class Network {
  // steps: the description of every step; weights: all parameters, a Float32Array.
  constructor(steps, weights) {
    this.steps = steps;
    this.weights = weights;
  }

  // The number of layers that can be closed.
  get layers() {
    return this.steps.filter((step) => step.layer !== null).length;
  }

  // Run a prepared sample. `closed` has the numbers of the layers that copy their input. With the trace of an earlier
  // run of the same sample in `previous`, only the steps from the first change on are computed.
  run(input, { closed = new Set(), previous = null } = {}) {
    const outputs = [], gates = [];
    let same = previous !== null, x = input;
    this.steps.forEach((step, number) => {
      const isClosed = step.layer !== null && closed.has(step.layer);
      same = same && isClosed === (step.layer !== null && previous.closed.has(step.layer));
      if (same) {
        outputs.push(previous.outputs[number]);
        gates.push(previous.gates[number]);
      } else if (isClosed) {
        outputs.push(x);
        gates.push(step.op.startsWith("highway") ? new Float32Array(x.length) : null);
      } else {
        const { output, gate } = OPERATIONS[step.op](step, this.weights, x);
        outputs.push(output);
        gates.push(gate);
      }
      x = outputs[number];
    });
    return { closed: new Set(closed), outputs, gates, logits: x };
  }

  // What the network says if it ends after a step: pooling and classifier applied to the step's output. Null if the
  // output does not have the size that they take.
  answerAfter(trace, number) {
    const rest = this.restAfter(number);
    return rest && rest.reduce((x, step) => OPERATIONS[step.op](step, this.weights, x).output, trace.outputs[number]);
  }

  // The steps that turn the output of a step into an answer, without the layers in between; null if sizes do not match.
  restAfter(number) {
    const { steps } = this, size = (shape) => shape.reduce((product, side) => product * side, 1);
    const lastMaps = steps.findLastIndex((step) => step.out.length === 3 && step.op !== "pool");
    const end = lastMaps < 0 ? steps.length - 1 : lastMaps + 1; // where the classifier begins
    const rest = steps.filter((step, at) => at > number && (step.op === "pool" || at >= end));
    const fits = rest.every((step, at) => {
      const before = at === 0 ? steps[number].out : rest[at - 1].out;
      return step.op === "pool" ? String(step.in) === String(before) : step.in[0] === size(before);
    });
    return fits ? rest : null;
  }
}

// What the page computes in the background: one sample, the score over all samples, and means over groups of samples.

const SLICE = 25; // milliseconds of scoring before newer messages are looked at
const KEPT = 64e6; // bytes of traces that are kept, so that the next score starts at the first layer that changed

class Explorer {
  constructor(store) {
    const { steps, weights, precision } = store.network;
    const values = precision === "float16" ? fromHalf(fromBase64(weights, Uint16Array)) : fromBase64(weights, Float32Array);
    this.store = store;
    this.network = new Network(steps, values);
    this.preparation = new Preparation(store.inputs);
    this.rows = shownSteps(steps);
    this.count = store.samples.targets.length;
    this.slots = {};
    this.traces = new Map();
    const bytes = steps.reduce((sum, step) => sum + 8 * step.out.reduce((product, side) => product * side, 1), 0);
    this.keeps = bytes * this.count < KEPT;
    this.newest = 0; // the number of the last score that was asked for
  }

  // Use the weights of a snapshot; the number after the last one stands for those that the run ended with.
  use({ snapshot }) {
    const { network, snapshots } = this.store;
    this.final ??= this.network;
    this.network = snapshot === snapshots.length ? this.final : new Network(network.steps, fromBytes(snapshots[snapshot]));
    for (const slot of Object.values(this.slots)) slot.key = null; // computed again from the first layer; until then, its maps can be asked for
    this.traces.clear();
    this.newest++;
    return null;
  }

  input({ sample, raw }) {
    return raw === undefined ? this.preparation.sample(sample, this.count) : this.preparation.prepare(raw);
  }

  // Run one sample. The same key stands for the same sample, of which only what changed is computed.
  run({ slot, key, input, closed }) {
    const began = performance.now(), last = this.slots[slot];
    const x = this.input(input), isFinite = x.every(Number.isFinite); // not of a row with a value beyond float32, which has no answer
    const trace = this.network.run(x, { closed: new Set(closed), previous: last?.key === key ? last.trace : null });
    this.slots[slot] = { key, trace };
    const answers = this.rows.map((number) => (isFinite ? this.network.answerAfter(trace, number) : null));
    return { ...this.summary(trace), answers, logits: isFinite ? trace.logits : trace.logits.map(() => NaN), milliseconds: performance.now() - began };
  }

  // Each layer as one row of numbers: its outputs and gates, those of feature maps as means over their positions.
  summary(trace) {
    const { steps } = this.network;
    const row = (values, step) => (values === null ? null : values.length === step.out[0] ? values : channelMeans(values, step.out[0]));
    return {
      outputs: this.rows.map((number) => row(trace.outputs[number], steps[number])),
      gates: this.rows.map((number) => row(trace.gates[number], steps[number])),
      activity: this.rows.map((number) => activity(trace, number, steps[number])),
    };
  }

  // The feature maps and gates of one step of the sample that was run last.
  detail({ slot, step }) {
    const { trace } = this.slots[slot];
    return { output: trace.outputs[step], gate: trace.gates[step] };
  }

  traceOf(sample, closed) {
    const trace = this.network.run(this.input({ sample }), { closed, previous: this.traces.get(sample) ?? null });
    if (this.keeps) this.traces.set(sample, trace);
    return trace;
  }

  // The outputs for all samples; null if a newer score was asked for meanwhile. `report` is called with the progress.
  async score({ closed }, report) {
    const mine = ++this.newest, wanted = new Set(closed), began = performance.now(), logits = [];
    let sliced = began;
    for (let sample = 0; sample < this.count; sample++) {
      logits.push(this.traceOf(sample, wanted).logits);
      if (performance.now() - sliced < SLICE) continue;
      report(sample / this.count);
      await new Promise((resolve) => setTimeout(resolve));
      if (mine !== this.newest) return null;
      sliced = performance.now();
    }
    return { logits, milliseconds: performance.now() - began };
  }

  // The mean rows of groups of samples.
  async means({ closed, groups }) {
    const wanted = new Set(closed), found = [];
    for (const samples of groups) {
      const sums = { outputs: null, gates: null };
      for (const sample of samples) {
        const rows = this.summary(this.traceOf(sample, wanted));
        for (const name of ["outputs", "gates"]) sums[name] = sums[name] === null ? rows[name].map((row) => row && Float32Array.from(row)) : addRows(sums[name], rows[name]);
      }
      for (const name of ["outputs", "gates"]) for (const row of sums[name] ?? []) row?.forEach((value, at) => { row[at] = value / samples.length; });
      found.push(sums);
      await new Promise((resolve) => setTimeout(resolve));
    }
    return found;
  }

  async answer(request, report) {
    return this[request.do](request, report);
  }
}

// The steps that have a row in the page: all layers but pooling and the last, which gives the answer.
function shownSteps(steps) {
  const numbers = [...steps.keys()].filter((number) => steps[number].op !== "pool");
  return steps.at(-1).op === "affine" ? numbers.slice(0, -1) : numbers;
}

function addRows(sums, rows) {
  rows.forEach((row, number) => row?.forEach((value, at) => { sums[number][at] += value; }));
  return sums;
}

function channelMeans(values, channels) {
  const positions = values.length / channels, means = new Float32Array(channels);
  for (let at = 0; at < values.length; at++) means[Math.floor(at / positions)] += values[at] / positions;
  return means;
}

// How much a layer does, from 0 to 1: its mean gate; for a residual layer, the size of its change relative to its output.
function activity(trace, number, step) {
  const gate = trace.gates[number], y = trace.outputs[number];
  if (gate !== null) return gate.reduce((sum, value) => sum + value, 0) / gate.length;
  if (step.op !== "residual") return null;
  const x = trace.outputs[number - 1];
  let change = 0, size = 0;
  for (let at = 0; at < y.length; at++) {
    change += (y[at] - x[at]) ** 2;
    size += y[at] ** 2 + x[at] ** 2;
  }
  return Math.min(Math.sqrt(change / (size / 2 || 1)), 1);
}

// In a worker there is no document: the first message has the page's data, the others are requests.
if (!globalThis.document) {
  let explorer = null;
  self.onmessage = async ({ data }) => {
    if (explorer === null) {
      explorer = new Explorer(data);
      return;
    }
    try {
      const result = await explorer.answer(data, (progress) => postMessage({ id: data.id, progress }));
      postMessage({ id: data.id, result });
    } catch (error) {
      postMessage({ id: data.id, error: String(error) });
    }
  };
}

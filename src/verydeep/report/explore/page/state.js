// What is shown, who wants to know when it changes, and the worker that computes.

const { steps } = store.network;
const preparation = new Preparation(store.inputs);
const { targets, scored } = store.samples;
const kind = store.task.kind, names = store.task.names.map(String);
const hasGates = steps.some((step) => step.op.startsWith("highway"));
const isConvolutional = steps.some((step) => step.out.length === 3 && step.op !== "pool");

// The rows of all maps: one for each layer but pooling and the classifier. Layers that can be closed are numbered.
const rows = shownSteps(steps).map((number) => {
  const { layer, name, out, op } = steps[number];
  return { step: number, layer, width: out[0], op, label: layer === null ? "" : String(layer + 1), title: layer === null ? `the plain layer ${name}` : `layer ${layer + 1}` };
});
const closable = rows.filter((row) => row.layer !== null);
// Whether the answer after several layers is known; in some convolutional networks, only the last layer fits the classifier.
const formsAnswers = (() => {
  const plan = new Network(steps, null);
  return rows.filter((row) => plan.restAfter(row.step) !== null).length >= Math.min(2, rows.length);
})();
const rowOf = (layer) => rows.findIndex((row) => row.layer === layer);

// Groups of samples whose routing is averaged: classes, labels, or thirds of a regression's first target.
const groups = (() => {
  const all = [...targets.keys()].filter((at) => scored[at]);
  if (kind === "regression") {
    const sorted = [...all].sort((a, b) => targets[a][0] - targets[b][0]), third = Math.ceil(sorted.length / 3);
    return ["lowest", "middle", "highest"].map((which, at) => ({ name: `${which} third of ${names[0]}`, samples: sorted.slice(at * third, (at + 1) * third) }))
      .filter((group) => group.samples.length);
  }
  const has = (at, name) => (kind === "classification" ? targets[at] === name : targets[at][name] > 0.5);
  return names.map((name, number) => ({ name, samples: all.filter((at) => has(at, number)) })).filter((group) => group.samples.length);
})();
const groupNoun = { classification: "class", multilabel: "label", regression: "group" }[kind];

class Backend { // requests to the worker, answered in any order
  constructor() {
    this.waiting = new Map();
    this.next = 1;
    const script = new Blob([document.currentScript.textContent], { type: "text/javascript" });
    const address = URL.createObjectURL(script);
    this.worker = new Worker(address);
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = () => { byId("trouble").hidden = false; };
    this.worker.postMessage(store);
  }

  ask(request, report = () => {}) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, report });
      this.worker.postMessage({ ...request, id });
    });
  }

  receive({ id, result, progress, error }) {
    const { resolve, reject, report } = this.waiting.get(id);
    if (progress !== undefined) return report(progress);
    this.waiting.delete(id);
    return error === undefined ? resolve(result) : reject(new Error(error));
  }
}

class State extends EventTarget {
  constructor() {
    super();
    this.backend = new Backend();
    this.closed = new Set();
    this.inputs = {}; // by slot, a and b: { key, input, sample, name, target }
    this.traces = {};
    this.whole = {}; // what each input's answer is with all layers open
    this.slot = "a"; // the slot that the next chosen sample goes to
    this.mode = "one";
    this.quantity = hasGates ? "gates" : "outputs";
    this.chosen = Math.max(rows.findIndex((row) => row.layer !== null), 0); // the row of the layer that is described
    this.score = null;
    this.fullScore = null;
  }

  tell(what, detail = {}) {
    this.dispatchEvent(new CustomEvent(what, { detail }));
  }

  on(names, action) {
    for (const name of names.split(" ")) this.addEventListener(name, ({ detail }) => action(detail));
  }

  // Show another sample: one of the page ({ sample }), or new raw values ({ raw }).
  async show(input, { slot = this.slot, moves = true, name = "", target = null } = {}) {
    const key = input.raw === undefined ? `sample ${input.sample}` : `new ${this.backend.next}`;
    this.inputs[slot] = { key, input, name, target };
    this.tell("input", { slot });
    await this.compute(slot, moves);
  }

  async compute(slot, moves) {
    const { key, input } = this.inputs[slot], closed = [...this.closed];
    const isOpen = closed.length === 0;
    const wholeSlot = `${slot} open`; // a second trace, so that the other one can start where layers changed
    const [found, open] = await Promise.all([
      this.backend.ask({ do: "run", slot, key, input, closed }),
      isOpen || this.whole[slot]?.key === key ? null : this.backend.ask({ do: "run", slot: wholeSlot, key, input, closed: [] }),
    ]);
    if (this.inputs[slot].key !== key || closed.length !== this.closed.size || closed.some((layer) => !this.closed.has(layer))) return;
    if (isOpen || open) this.whole[slot] = { key, logits: (open ?? found).logits };
    this.traces[slot] = found;
    this.tell("trace", { slot, moves });
  }

  // Close exactly these layers.
  async close(layers) {
    this.closed = new Set(layers);
    this.tell("closed");
    await this.refresh();
  }

  // Compute everything again. Of changes that come meanwhile, as from a slider, only the last is computed.
  async refresh() {
    this.isStale = true;
    if (this.isRefreshing) return;
    this.isRefreshing = true;
    try {
      while (this.isStale) {
        this.isStale = false;
        await Promise.all(Object.keys(this.inputs).map((slot) => this.compute(slot, false)));
      }
    } finally {
      this.isRefreshing = false;
    }
    this.rescore();
  }

  toggle(layers, isClosed = !layers.every((layer) => this.closed.has(layer))) {
    const next = new Set(this.closed);
    for (const layer of layers) isClosed ? next.add(layer) : next.delete(layer);
    return this.close(next);
  }

  async rescore() {
    const closed = [...this.closed];
    this.tell("scoring", { progress: 0 });
    const found = await this.backend.ask({ do: "score", closed }, (progress) => this.tell("scoring", { progress }));
    if (found === null) return; // layers changed meanwhile
    this.score = { ...scoreOf(found.logits), milliseconds: found.milliseconds };
    if (closed.length === 0) this.fullScore = this.score;
    this.tell("score");
  }

  // Compute with the weights of a snapshot.
  async use(snapshot) {
    await this.backend.ask({ do: "use", snapshot });
    this.whole = {};
    this.fullScore = null;
    this.tell("weights");
    await this.refresh();
  }

  choose(row) {
    this.chosen = clamp(row, 0, rows.length - 1);
    this.tell("chosen");
  }

  set(values) {
    Object.assign(this, values);
    this.tell("mode");
  }
}

// The measure over the scored samples, and which of all samples are answered correctly (null for a regression).
function scoreOf(logits) {
  const counted = [...targets.keys()].filter((at) => scored[at]);
  if (kind === "classification") {
    const correct = logits.map((row, at) => row.indexOf(Math.max(...row)) === targets[at]);
    return { name: "accuracy", value: counted.filter((at) => correct[at]).length / counted.length, correct };
  }
  if (kind === "multilabel") {
    const right = logits.map((row, at) => sum(Array.from(row, (value, label) => Number(value > 0 === targets[at][label] > 0.5))) / row.length);
    return { name: "correct labels", value: sum(counted.map((at) => right[at])) / counted.length, correct: right.map((share) => share === 1) };
  }
  const found = logits.map(read), each = names.map((_, target) => {
    const mean = sum(counted.map((at) => targets[at][target])) / counted.length;
    const left = sum(counted.map((at) => (found[at][target] - targets[at][target]) ** 2));
    return 1 - left / (sum(counted.map((at) => (targets[at][target] - mean) ** 2)) || 1);
  });
  return { name: "R²", value: sum(each) / each.length, correct: null };
}

const state = new State();

// Which layers matter, for networks that Python did not measure: by how much closing each layer raises the loss.

const MOST_MEASURED = 64; // samples

class Importance {
  constructor(explorer) {
    this.explorer = explorer;
    this.samples = [...Array(Math.min(explorer.count, MOST_MEASURED)).keys()];
  }

  loss(logits, sample) {
    const { task, samples } = this.explorer.store, target = samples.targets[sample];
    if (task.kind === "classification") {
      const most = Math.max(...logits);
      return Math.log(logits.reduce((sum, value) => sum + Math.exp(value - most), 0)) + most - logits[target];
    }
    const terms = Array.from(logits, (value, at) => (task.kind === "multilabel" ? softplus(value) - target[at] * value : (value - (target[at] - task.mean[at]) / task.deviation[at]) ** 2));
    return terms.reduce((sum, value) => sum + value, 0) / terms.length;
  }

  meanLoss(closed, whole) {
    const { network } = this.explorer;
    return this.samples.reduce((sum, sample, at) => {
      const trace = network.run(whole[at].input, { closed, previous: whole[at].trace });
      return sum + this.loss(trace.logits, sample) / this.samples.length;
    }, 0);
  }

  // The layers, the least important first, and as many of the first as can be closed at little cost.
  async measure() {
    const { explorer } = this, pause = () => new Promise((resolve) => setTimeout(resolve));
    const whole = this.samples.map((sample) => {
      const input = explorer.input({ sample });
      return { input, trace: explorer.network.run(input) };
    });
    const full = this.meanLoss(new Set(), whole), rises = [];
    for (let layer = 0; layer < explorer.network.layers; layer++) {
      rises.push(this.meanLoss(new Set([layer]), whole));
      await pause();
    }
    const order = [...rises.keys()].sort((a, b) => rises[a] - rises[b]);
    let least = 0, most = order.length; // the number of idle layers, by bisection
    while (least < most) {
      const middle = Math.ceil((least + most) / 2);
      if (this.meanLoss(new Set(order.slice(0, middle)), whole) <= 1.02 * full + 1e-3) least = middle;
      else most = middle - 1;
      await pause();
    }
    return { order, idle: order.slice(0, least).sort((a, b) => a - b), samples: this.samples.length };
  }
}

// The answer as it forms: what the classifier would say after each layer, from top to bottom.
class Ribbon {
  constructor({ id, title, note, slot }) {
    Object.assign(this, { id, slot });
    this.canvas = make("canvas", { class: "map", role: "img", "aria-label": `${title}. ${note}` });
    this.axis = make("canvas", { class: "bar", "aria-hidden": "true" });
    this.element = make("figure", { "data-panel": id, class: "ribbon" }, make("figcaption", {}, title, make("span", { class: "soft" }, note)), this.canvas, this.axis);
  }

  get answers() {
    return state.traces[this.slot] ? answersOf(state.traces[this.slot]) : [];
  }

  draw(view, reveal, box) {
    const [pen, width] = canvasFor(this.canvas), answers = this.answers;
    pen.fillStyle = colour("--card");
    pen.fillRect(0, box.top, width, box.height);
    const y = (row) => box.top + (row + 0.5 - view.first) / view.count * box.height;
    const shown = answers.map((values, row) => ({ values, y: y(row), row })).filter(({ values, row }) => values && row < reveal);
    this.range = [0, 1];
    if (shown.length && kind === "classification") this.stack(pen, shown, width, box, view);
    else if (shown.length) this.lines(pen, shown, width, box);
    markClosed(pen, view, box, 6, 0.8);
    markChosen(pen, view, box, width);
    this.drawAxis();
  }

  stack(pen, shown, width, box, view) {
    const high = box.height / view.count, painted = coloursOfClasses(this.slot);
    const order = [...painted.keys(), null];
    const starts = shown.map(() => 0);
    for (const name of order) {
      const ends = shown.map(({ values }, at) => (name === null ? 1 : starts[at] + values[name]));
      pen.beginPath(); // each layer is a step, joined smoothly to the next
      const above = (at) => shown[at].y - high * (at === 0 ? 0.5 : 0.3), below = (at) => shown[at].y + high * (at === shown.length - 1 ? 0.5 : 0.3);
      for (let at = 0; at < shown.length; at++) {
        pen.lineTo(ends[at] * width, above(at));
        pen.lineTo(ends[at] * width, below(at));
      }
      for (let at = shown.length - 1; at >= 0; at--) {
        pen.lineTo(starts[at] * width, below(at));
        pen.lineTo(starts[at] * width, above(at));
      }
      pen.fillStyle = name === null ? colour("--pad") : colour(painted.get(name));
      pen.fill();
      if (name !== null) {
        const inView = [...shown.keys()].filter((i) => shown[i].row >= view.first && shown[i].row < view.first + view.count);
        const at = inView.reduce((best, i) => (ends[i] - starts[i] > ends[best] - starts[best] ? i : best), inView[0] ?? 0);
        if (inView.length) this.label(pen, shortened(names[name], 12), (starts[at] + ends[at]) / 2 * width, shown[at].y, (ends[at] - starts[at]) * width, box);
      }
      ends.forEach((end, at) => { starts[at] = end; });
    }
  }

  label(pen, text, x, y, room, box) {
    pen.font = "600 12px system-ui, sans-serif";
    if (pen.measureText(text).width + 8 > room) return;
    pen.fillStyle = colour("--paper");
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, x, clamp(y, box.top + 9, box.top + box.height - 9));
    pen.font = "11px system-ui, sans-serif";
  }

  // Labels and numbers: one line each.
  lines(pen, shown, width, box) {
    const painted = coloursOfClasses(this.slot), target = state.inputs[this.slot]?.target;
    if (kind === "regression") {
      const values = shown.flatMap((row) => [...painted.keys()].map((name) => this.place(row.values, name)));
      if (target) values.push(...[...painted.keys()].map((name) => this.place(target, name)));
      const low = Math.min(...values), high = Math.max(...values), room = (high - low || Math.abs(high) || 1) * 0.08;
      this.range = [low - room, high + room];
    }
    const x = (value) => (value - this.range[0]) / (this.range[1] - this.range[0]) * width;
    for (const [name, variable] of painted) {
      pen.strokeStyle = colour(variable);
      if (kind === "regression" && target) {
        pen.setLineDash([4, 4]);
        pen.strokeRect(x(this.place(target, name)), box.top, 0, box.height);
        pen.setLineDash([]);
      }
      pen.lineWidth = 2;
      pen.beginPath();
      for (const { values, y } of shown) pen.lineTo(clamp(x(this.place(values, name)), 1, width - 1), y);
      pen.stroke();
    }
  }

  place(values, name) { // several targets have different units, and are shown in standard deviations
    return names.length === 1 || kind !== "regression" ? values[name] : (values[name] - store.task.mean[name]) / store.task.deviation[name];
  }

  drawAxis() {
    const [pen, width] = canvasFor(this.axis), [low, high] = this.range;
    pen.fillStyle = colour("--soft");
    pen.textBaseline = "top";
    const marks = [[low, "left", 0], [(low + high) / 2, "center", width / 2], [high, "right", width]];
    for (const [value, align, x] of marks.filter(([, place]) => width >= NARROW || place !== "center")) {
      pen.textAlign = align;
      pen.fillText(kind === "regression" ? inUnits(value) : percent(value, 0), x, 12);
    }
  }
}

// What the classifier says after each layer, read once for each trace.
const answered = new WeakMap();

function answersOf(trace) {
  if (!answered.has(trace)) answered.set(trace, trace.answers.map((logits) => logits && read(logits)));
  return answered.get(trace);
}

// The classes that have a colour: the answer first, then the true class and others that were likely on the way.
function coloursOfClasses(slot) {
  const trace = state.traces[slot], target = state.inputs[slot]?.target, variables = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5"];
  if (!trace) return new Map();
  if (kind !== "classification") return new Map(names.slice(0, 6).map((_, at) => [at, variables[at]]));
  const last = read(trace.logits), peaks = [...last];
  for (const values of answersOf(trace)) values?.forEach((value, name) => { peaks[name] = Math.max(peaks[name], value); });
  const answer = last.indexOf(Math.max(...last));
  const others = [...names.keys()].filter((name) => name !== answer && name !== target).sort((a, b) => peaks[b] - peaks[a]);
  const chosen = [answer, ...(target === null || target === answer ? [] : [target]), ...others].slice(0, 6);
  const free = target === answer || target === null ? ["--c0", "--c2", "--c4", "--c3", "--c5", "--c1"] : variables;
  return new Map(chosen.filter((name) => peaks[name] > 0.03).map((name, at) => [name, free[at]]));
}

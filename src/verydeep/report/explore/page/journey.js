// The journey of a sample: panels side by side that share one axis, the layers from top to bottom.
const TRAVEL = 900; // milliseconds from the first layer to the last

class Journey {
  constructor(element) {
    this.element = element.querySelector(".panels");
    this.readout = element.querySelector(".readout");
    this.hint = this.readout.textContent;
    this.view = { first: 0, count: rows.length };
    this.reveal = rows.length;
    this.panels = [];
    this.layers = new Layers();
    this.last = null; // the layer that was switched last, where a range starts
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.pointed = null; // what the readout is about
    state.on("trace", ({ moves }) => {
      if (this.pointed) this.describe(...this.pointed);
      if (moves) this.travel();
      else this.draw();
    });
    state.on("chosen closed means", () => this.draw());
    for (const query of [dark, paper]) query.addEventListener("change", () => this.draw());
    for (const [name, factor] of [["in", 2], ["out", 0.5], ["all", 0]]) {
      element.querySelector(`[data-zoom=${name}]`).addEventListener("click", () => this.zoom(factor));
    }
    element.querySelector(".zoom").hidden = rows.length <= 60;
    for (const part of ["#compare", "#detail"]) element.querySelector(part).hidden = rows.length === 0;
    this.listen(this.layers.canvas, true);
    this.layers.canvas.addEventListener("keydown", (event) => this.key(event));
    this.layers.canvas.addEventListener("focus", () => this.describe(state.chosen));
    this.layers.canvas.addEventListener("blur", () => this.forget());
  }

  show(panels) {
    this.panels = panels;
    for (const panel of panels) {
      if (panel.isHeard) continue;
      panel.isHeard = true;
      this.listen(panel.canvas, false);
    }
    this.element.replaceChildren(this.layers.element, ...panels.map((panel) => panel.element));
    this.draw();
  }

  get box() { // of the rows in each canvas, in CSS pixels
    return { top: 1, height: this.layers.canvas.getBoundingClientRect().height - 2 };
  }

  rowAt(event) {
    const { top, height } = this.box;
    return clamp(Math.floor(this.view.first + (event.offsetY - top) / height * this.view.count), 0, rows.length - 1);
  }

  listen(canvas, switches) {
    canvas.addEventListener("pointermove", (event) => this.describe(this.rowAt(event), this.blockAt(canvas, event)));
    canvas.addEventListener("pointerleave", () => this.forget());
    canvas.addEventListener("click", (event) => {
      const row = this.rowAt(event);
      if (switches) this.switch(row, event.shiftKey);
      state.choose(row);
    });
  }

  forget() {
    this.pointed = null;
    this.readout.textContent = this.hint;
  }

  blockAt(canvas, event) {
    const panel = this.panels.find((each) => each.canvas === canvas);
    return panel ? { panel, column: panel instanceof HeatMap ? Math.floor(event.offsetX / canvas.clientWidth * panel.columns) : null } : null;
  }

  // Close or open a layer, or all from the last one switched to this one.
  switch(row, isRange) {
    const { layer } = rows[row];
    if (layer === null) return;
    if (isRange && this.last !== null) {
      const [from, to] = [Math.min(this.last, layer), Math.max(this.last, layer)];
      state.toggle(closable.map((each) => each.layer).filter((each) => each >= from && each <= to), state.closed.has(this.last));
    } else state.toggle([layer]);
    this.last = layer;
    this.describe(row);
  }

  key(event) {
    const moves = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    const actions = { " ": () => this.switch(state.chosen, event.shiftKey), Enter: () => this.switch(state.chosen, event.shiftKey),
      "+": () => this.zoom(2), "=": () => this.zoom(2), "-": () => this.zoom(0.5), 0: () => this.zoom(0) };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves || event.key in actions)) return;
    event.preventDefault();
    if (event.key in actions) actions[event.key]();
    else state.choose(state.chosen + moves[event.key]);
    const { view } = this; // the view follows
    view.first = clamp(view.first, Math.max(state.chosen - view.count + 1, 0), state.chosen);
    this.draw();
    this.describe(state.chosen);
  }

  zoom(factor) {
    const count = factor === 0 ? rows.length : clamp(Math.round(this.view.count / factor), Math.min(8, rows.length), rows.length);
    this.view = { first: clamp(Math.round(state.chosen - count / 2), 0, rows.length - count), count };
    this.draw();
  }

  describe(number, at = null) {
    const row = rows[number], trace = state.traces[at === null ? "a" : at.panel.slot], parts = []; // none for a mean
    if (!row) return;
    this.pointed = [number, at];
    if (row.layer !== null) parts.push(state.closed.has(row.layer) ? "closed, so it copies its input" : "open");
    if (at !== null && at.column !== null && at.column < row.width && at.panel.row(number)) {
      parts.push(`${isConvolutional ? "feature map" : "block"} ${at.column + 1}: ${say(at.panel.row(number)[at.column])}`);
    } else if (trace?.activity[number] != null) parts.push(`${hasGates ? "mean gate" : "relative change"} ${say(trace.activity[number])}`);
    if (trace?.answers[number]) parts.push(`answer so far: ${inWords(read(trace.answers[number]))}`);
    this.readout.textContent = `${row.title[0].toUpperCase()}${row.title.slice(1)}: ${parts.join(" · ")}`;
  }

  // Fill the maps from top to bottom, as the sample passes through the layers.
  travel() {
    cancelAnimationFrame(this.frame);
    if (stillness.matches || rows.length < 2) {
      this.reveal = rows.length;
      this.draw();
      return;
    }
    const began = performance.now();
    const move = (now) => {
      const share = clamp((now - began) / TRAVEL, 0, 1);
      this.reveal = Math.ceil(share * rows.length);
      this.draw();
      if (share < 1) this.frame = requestAnimationFrame(move);
    };
    this.frame = requestAnimationFrame(move);
  }

  draw() {
    if (rows.length === 0 || !this.layers.canvas.isConnected) return;
    const { view, box } = this, reveal = paper.matches ? rows.length : this.reveal;
    for (const panel of [this.layers, ...this.panels]) panel.draw(view, reveal, box);
  }
}

// Whether there is an answer: an edited row may have values beyond float32.
function isFiniteAnswer(values) {
  return values.every(Number.isFinite);
}

// An answer in a few words.
function inWords(values) {
  if (!isFiniteAnswer(values)) return "none, as a value is too large";
  if (kind === "classification") {
    const best = values.indexOf(Math.max(...values));
    return `${shortened(names[best], LONGEST)} (${percent(values[best], 0)})`;
  }
  if (kind === "multilabel") {
    const chosen = names.filter((_, label) => values[label] > 0.5);
    return chosen.length ? shortened(chosen.join(", "), LONGEST) : "no label";
  }
  return values.map((value, at) => (names.length === 1 ? inUnits(value) : `${names[at]} ${inUnits(value)}`)).join(", ");
}

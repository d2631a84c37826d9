// What the journey shows: one sample, a sample beside the mean of a class, two samples, or two classes.
const GATES = { kind: "sequential", low: 0, high: 1, power: 0.5, marks: [0, 0.05, 0.25, 1] };

class Compare {
  constructor(element, journey) {
    this.element = element;
    this.journey = journey;
    this.means = [];
    this.newest = 0; // the number of the last means that were asked for
    const words = { mean: `With a ${groupNoun} mean`, classes: { classification: "Two classes", multilabel: "Two labels", regression: "Two groups" }[kind] };
    for (const radio of element.querySelectorAll("[name=mode]")) {
      radio.addEventListener("change", () => this.enter(radio.value));
      if (words[radio.value]) radio.nextElementSibling.textContent = words[radio.value];
    }
    this.selects = ["first", "second"].map((name, at) => {
      const select = element.querySelector(`[name=${name}]`);
      select.append(...groups.map((group, number) => make("option", { value: String(number) }, shortened(group.name, 40))));
      select.value = String(Math.min(at, groups.length - 1));
      select.addEventListener("change", () => this.average());
      return select;
    });
    this.quantity = element.querySelector("[name=quantity]");
    if (!hasGates) this.quantity.closest("label").hidden = true;
    this.quantity.value = state.quantity;
    this.quantity.addEventListener("change", () => { state.set({ quantity: this.quantity.value }); this.rebuild(); });
    state.on("closed weights", () => this.average());
    state.on("trace", () => { this.rescale(); journey.draw(); });
    this.rebuild();
  }

  async enter(mode) {
    if (mode === "two" && !state.inputs.b) await showSample(this.another(), "b");
    if (this.element.elements.mode.value !== mode) return; // another view was chosen meanwhile
    if (mode === "mean") this.selects[0].value = String(this.groupOfSample());
    state.set({ mode, slot: mode === "two" ? "b" : "a" });
    this.means = [];
    this.rebuild();
    await this.average();
  }

  another() { // a sample of another class to begin with
    const current = state.inputs.a.input.sample ?? 0;
    const other = [...targets.keys()].find((at) => kind === "classification" && targets[at] !== targets[current] && state.score?.correct?.[at]);
    return other ?? (current + 1) % targets.length;
  }

  groupOfSample() {
    const { target } = state.inputs.a;
    const name = kind === "classification" && target !== null ? names[target] : null;
    return Math.max(groups.findIndex((group) => group.name === name), 0);
  }

  get chosen() {
    return this.selects.map((select) => groups[Number(select.value)]);
  }

  async average() {
    if (state.mode !== "mean" && state.mode !== "classes") return;
    const wanted = state.mode === "mean" ? this.chosen.slice(0, 1) : this.chosen, mine = ++this.newest;
    const means = await state.backend.ask({ do: "means", closed: [...state.closed], groups: wanted.map((group) => group.samples) });
    if (mine !== this.newest) return; // other groups were chosen meanwhile
    this.means = means;
    this.rebuild();
  }

  values(which) { // of "a", "b", or the number of a mean
    const found = typeof which === "number" ? this.means[which] : state.traces[which];
    return found?.[state.quantity] ?? null;
  }

  map(id, title, note, which) {
    return new HeatMap({ id, title, note, scale: state.quantity === "gates" ? { ...GATES } : this.scale([which]), values: () => this.values(which), slot: typeof which === "number" ? null : which });
  }

  difference(id, title, first, second) {
    const values = () => {
      const [a, b] = [this.values(first), this.values(second)];
      return a && b && a.map((row, at) => row && b[at] && row.map((value, block) => value - b[at][block]));
    };
    const most = largest(values());
    return new HeatMap({ id, title, note: "Red: more in the first. Blue: more in the second.", scale: { kind: "diverging", low: -most, high: most, power: 1 }, values });
  }

  scale(which) {
    const found = which.map((each) => (typeof each === "number" ? this.means[each]?.outputs : state.traces[each]?.outputs));
    const most = Math.max(...found.map(largest)), isSigned = found.some((rows) => rows?.some((row) => row?.some((value) => value < 0)));
    return isSigned ? { kind: "diverging", low: -most, high: most, power: 1 } : { kind: "sequential", low: 0, high: most, power: 1 };
  }

  rescale() { // outputs of another sample may be larger
    for (const panel of this.journey.panels) {
      if (panel.id === "outputs") panel.scale = this.scale(["a"]);
      if (panel.id === "difference") panel.scale = this.difference("", "", ...panel.pair).scale;
    }
  }

  rebuild() {
    const { mode } = state, means = this.chosen.map((group) => shortened(group?.name ?? "", 18));
    for (const [select, isShown] of [[this.selects[0], mode === "mean" || mode === "classes"], [this.selects[1], mode === "classes"]]) select.closest("label").hidden = !isShown;
    this.quantity.closest("label").hidden = !hasGates || mode === "one";
    const what = state.quantity === "gates" ? "gates" : "outputs", ribbon = (slot, title) => (!formsAnswers ? [] : [new Ribbon({ id: `ribbon-${slot}`, slot, title, note: `What the ${kind === "regression" ? "output layer" : "classifier"} would say after each layer.` })]);
    const between = (title, a, b) => Object.assign(this.difference("difference", title, a, b), { pair: [a, b] });
    const panels = {
      one: () => [
        new HeatMap({ id: "outputs", title: "Block outputs, y", note: "What each layer passes on.", scale: this.scale(["a"]), values: () => state.traces.a?.outputs ?? null, slot: "a" }),
        ...(hasGates ? [new HeatMap({ id: "gates", title: "Transform gates, t", note: "Bright: transforms. Dark: copies.", scale: { ...GATES }, values: () => state.traces.a?.gates ?? null, slot: "a" })] : []),
        ...ribbon("a", "The answer as it forms"),
      ],
      mean: () => [this.map("first", `This sample: ${what}`, "", "a"), this.map("second", `Mean ${what}: ${means[0]}`, `Over ${plural(this.chosen[0]?.samples.length ?? 0, "sample")}.`, 0), between("Sample minus mean", "a", 0)],
      two: () => [this.map("first", `A: ${what}`, "", "a"), this.map("second", `B: ${what}`, "", "b"), between("A minus B", "a", "b"), ...ribbon("a", "A: the answer as it forms"), ...ribbon("b", "B: the answer")],
      classes: () => [this.map("first", `Mean ${what}: ${means[0]}`, `Over ${plural(this.chosen[0]?.samples.length ?? 0, "sample")}.`, 0), this.map("second", `Mean ${what}: ${means[1]}`, `Over ${plural(this.chosen[1]?.samples.length ?? 0, "sample")}.`, 1), between("Difference", 0, 1)],
    };
    this.journey.show(panels[mode]());
  }
}

// The largest absolute value in rows.
function largest(rows) {
  let most = 1e-6;
  for (const row of rows ?? []) row?.forEach((value) => { most = Math.max(most, Math.abs(value)); });
  return most;
}

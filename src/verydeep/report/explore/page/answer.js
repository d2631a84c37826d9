// The answer: a bar per class or label, or the predicted numbers, and what it would be with all layers open.
const MOST_BARS = 10, MOST_OF_TWO = 4; // classes that are shown

class Answer {
  constructor(element) {
    this.element = element;
    this.list = element.querySelector(".bars");
    this.sentence = element.querySelector(".sentence");
    this.time = element.querySelector(".time");
    this.key = element.querySelector(".key");
    state.on("trace mode", () => this.draw());
    state.on("input closed weights", () => element.classList.add("busy"));
  }

  draw() {
    const slots = state.mode === "two" && state.traces.b ? ["a", "b"] : ["a"];
    if (!state.traces.a) return;
    this.element.classList.remove("busy");
    this.list.replaceChildren(...slots.flatMap((slot) => this.bars(slot, slots.length > 1)));
    this.sentence.textContent = slots.map((slot) => this.say(slot, slots.length > 1)).join(" ");
    this.key.hidden = state.closed.size === 0;
    this.time.textContent = `Computed in ${state.traces.a.milliseconds.toFixed(state.traces.a.milliseconds < 10 ? 1 : 0)} ms.`;
  }

  say(slot, isNamed) {
    const values = read(state.traces[slot].logits), { target } = state.inputs[slot], who = isNamed ? `${slot.toUpperCase()}: ` : "";
    const start = `${who}${inWords(values)}`;
    if (target === null || !isFiniteAnswer(values)) return `${start}.`;
    if (kind === "classification") return values.indexOf(Math.max(...values)) === target ? `${start}, which is correct.` : `${start}, but it is ${shortened(names[target], LONGEST)}.`;
    if (kind === "multilabel") {
      const wrong = names.filter((_, label) => values[label] > 0.5 !== target[label] > 0.5);
      return wrong.length ? `${start}. Wrong: ${shortened(wrong.join(", "), 80)}.` : `${start}. All labels are correct.`;
    }
    const off = values.map((value, at) => value - target[at]);
    return off.length > 1 ? `${start}.` : `${start}, too ${off[0] < 0 ? "low" : "high"} by ${inUnits(Math.abs(off[0]))}.`;
  }

  bars(slot, isNamed) {
    const values = read(state.traces[slot].logits), whole = state.whole[slot] ? read(state.whole[slot].logits) : values;
    const head = isNamed ? [make("li", { class: "head" }, `Sample ${slot.toUpperCase()}`)] : [];
    if (kind === "regression") return [...head, ...values.map((value, at) => this.number(at, value, whole[at], state.inputs[slot].target?.[at] ?? null))];
    const shown = [...names.keys()], most = isNamed ? MOST_OF_TWO : MOST_BARS;
    if (names.length > most) shown.sort((a, b) => Math.max(values[b], whole[b]) - Math.max(values[a], whole[a])).splice(most);
    const painted = coloursOfClasses(slot);
    return [...head, ...shown.map((name) => this.bar(name, values[name], whole[name], state.inputs[slot].target, painted.get(name)))];
  }

  bar(name, value, whole, target, variable) {
    const isTrue = kind === "classification" ? target === name : target?.[name] > 0.5;
    const isChanged = Math.abs(value - whole) > 0.005;
    const fill = make("span", { class: "fill" }), tick = make("span", { class: "whole", hidden: !isChanged });
    fill.style.width = `${100 * value}%`;
    fill.style.background = `var(${variable ?? "--idle"})`;
    tick.style.left = `${100 * whole}%`;
    return make("li", { class: isTrue ? "true" : "" },
      make("span", { class: "name", title: names[name] }, make("span", { class: "called" }, names[name]), isTrue ? make("span", { class: "mark" }, make("span", { "aria-hidden": "true" }, "✓"), make("span", { class: "unseen" }, " (true)")) : null),
      make("span", { class: "track", "aria-hidden": "true" }, fill, tick),
      make("span", { class: "value" }, percent(value), isChanged ? make("span", { class: "unseen" }, `, ${percent(whole)} with all layers open`) : null));
  }

  number(at, value, whole, target) {
    const isChanged = Math.abs(value - whole) > 1e-3 * store.task.deviation[at];
    return make("li", { class: "number" }, make("span", { class: "name" }, names[at]), make("span", { class: "big" }, inUnits(value)),
      make("span", { class: "soft" }, [target === null ? "" : `true ${inUnits(target)}`, isChanged ? `all layers open: ${inUnits(whole)}` : ""].filter(Boolean).join(" · ")));
  }
}

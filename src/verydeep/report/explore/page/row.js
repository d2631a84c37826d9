// A form with a field for each column of the table, or each value of a vector.
class RowForm {
  constructor(element) {
    this.form = element.querySelector("form");
    this.columns = store.inputs.columns;
    this.fields = this.columns.map((column, at) => this.field(column, at));
    this.form.replaceChildren(...this.fields.map((field) => field.element));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    state.on("input", ({ slot }) => this.fill(slot));
    state.on("mode", () => this.fill(state.slot));
  }

  field(column, at) {
    const id = `field-${at}`, changed = () => this.changed(at);
    const label = make("label", { for: id, title: column.name }, column.name);
    if (column.kind === "category" || column.kind === "boolean") return this.choice(column, id, label, changed);
    if (column.kind === "date") return this.date(column, id, label, changed);
    const step = column.whole ? 1 : niceStep(column.high - column.low);
    const input = make("input", { id, type: "number", step: "any", inputmode: "decimal", placeholder: `missing: ${inUnits(column.fill)}` });
    const slider = make("input", { type: "range", min: String(column.low), max: String(column.high), step: column.whole ? "1" : "any", "aria-label": `${column.name}, from ${inUnits(column.low)} to ${inUnits(column.high)}` });
    input.addEventListener("input", () => { if (input.value !== "") slider.value = input.value; changed(); });
    slider.addEventListener("input", () => { input.value = String(Number((Math.round(slider.value / step) * step).toPrecision(10))); changed(); });
    return {
      element: make("div", { class: "field" }, label, input, slider),
      get: () => (input.value === "" || Number.isNaN(input.valueAsNumber) ? null : input.valueAsNumber),
      set: (value) => { input.value = value === null ? "" : String(Number(value.toPrecision(10))); slider.value = value ?? column.fill; },
    };
  }

  choice(column, id, label, changed) {
    const values = column.kind === "boolean" ? [0, 1] : column.values;
    const select = make("select", { id }, ...values.map((value, number) => make("option", { value: String(number) }, column.kind === "boolean" ? ["false", "true"][number] : value)),
      make("option", { value: "missing" }, "(missing)"), ...(column.kind === "category" ? [make("option", { value: "new" }, "(another value)")] : []));
    select.addEventListener("change", changed);
    return {
      element: make("div", { class: "field" }, label, select),
      get: () => (select.value === "missing" ? null : select.value === "new" ? undefined : values[Number(select.value)]),
      set: (value) => { select.value = value === null ? "missing" : values.includes(value) ? String(values.indexOf(value)) : "new"; },
    };
  }

  date(column, id, label, changed) {
    const text = (days) => new Date(days * 864e5).toISOString().slice(0, column.whole ? 10 : 16);
    const input = make("input", { id, type: column.whole ? "date" : "datetime-local", min: text(column.low), max: text(column.high) });
    input.addEventListener("input", changed);
    return {
      element: make("div", { class: "field" }, label, input),
      get: () => (input.value === "" ? null : Date.parse(input.value + (column.whole ? "" : "Z")) / 864e5),
      set: (value) => { input.value = value === null ? "" : text(value); },
    };
  }

  // The cells of the chosen sample; the fields that are not edited keep their exact values.
  fill(slot) {
    const chosen = state.inputs[slot];
    if (slot !== state.slot || !chosen || this.isTyping) return;
    this.cells = [...(chosen.input.raw ?? preparation.raw(chosen.input.sample))];
    this.from = chosen.name;
    this.fields.forEach((field, at) => field.set(this.cells[at] ?? (this.cells[at] === undefined ? "" : null)));
  }

  // The true answer for an edited row is not known, so none is shown.
  changed(at) {
    this.cells[at] = this.fields[at].get();
    const raw = [...this.cells], name = `${this.from.replace(/, edited$/, "")}, edited`;
    this.isTyping = true; // the fields stay as they are typed
    const shown = state.show({ raw }, { moves: false, name });
    this.isTyping = false;
    return shown;
  }
}

function niceStep(range) {
  return range > 0 ? 10 ** Math.floor(Math.log10(range / 100)) : 1;
}

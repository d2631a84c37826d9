// Closing many layers at once: the idle ones, all but the most important, a range; and opening all again.
class Closing {
  constructor(element) {
    this.element = element;
    const { order, idle, samples } = store.importance;
    element.hidden = closable.length === 0;
    this.keep = element.querySelector("#keep");
    this.kept = element.querySelector("#kept");
    this.idle = element.querySelector("[data-do=idle]");
    this.idle.textContent = idle.length ? `Close the ${idle.length} idle` : "No idle layers";
    this.idle.disabled = idle.length === 0;
    this.keep.max = closable.length;
    this.keep.value = closable.length;
    const noun = { classification: "accuracy", multilabel: "correct labels", regression: "R²" }[kind];
    element.querySelector(".how").textContent = `Idle layers can be closed together without losing more ${noun} than chance explains. The order of importance comes from closing layers one after the other, measured on ${samples} samples when this page was written.`;
    this.idle.addEventListener("click", () => state.close(idle));
    element.querySelector("[data-do=open]").addEventListener("click", () => state.close([]));
    this.keep.addEventListener("input", () => state.close(order.slice(0, closable.length - Number(this.keep.value))));
    element.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.range(new FormData(event.target));
    });
    for (const name of ["from", "to"]) Object.assign(element.querySelector(`[name=${name}]`), { max: closable.length });
    element.querySelector("[name=to]").value = Math.min(10, closable.length);
    state.on("closed", () => this.draw());
    this.draw();
  }

  range(form) {
    const [from, to] = [Number(form.get("from")), Number(form.get("to"))].sort((a, b) => a - b);
    state.toggle(closable.map((row) => row.layer).filter((layer) => layer + 1 >= from && layer + 1 <= to), true);
  }

  draw() {
    const open = closable.length - state.closed.size;
    if (document.activeElement !== this.keep) this.keep.value = open;
    this.kept.textContent = `${open} of ${closable.length}`;
    this.element.querySelector("[data-do=open]").disabled = state.closed.size === 0;
  }
}

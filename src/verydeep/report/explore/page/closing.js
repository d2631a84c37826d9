// Closing many layers at once: the idle ones, all but the most important, a range; and opening all again.
class Closing {
  constructor(element) {
    this.element = element;
    element.hidden = closable.length === 0;
    this.keep = element.querySelector("#keep");
    this.kept = element.querySelector("#kept");
    this.idle = element.querySelector("[data-do=idle]");
    this.keep.max = closable.length;
    this.keep.value = closable.length;
    this.idle.addEventListener("click", () => state.close(store.importance.idle));
    element.querySelector("[data-do=open]").addEventListener("click", () => state.close([]));
    this.keep.addEventListener("input", () => state.close(store.importance.order.slice(0, closable.length - Number(this.keep.value))));
    element.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.range(new FormData(event.target));
    });
    for (const name of ["from", "to"]) Object.assign(element.querySelector(`[name=${name}]`), { max: closable.length });
    element.querySelector("[name=to]").value = Math.min(10, closable.length);
    state.on("closed", () => this.draw());
    if (closable.length) this.describe(`at a cost of at most ${store.importance.allowed}. The order of importance comes from closing layers one after the other, the cheapest first. Both were measured on ${store.importance.samples}${store.importance.reported ? ", as for the report" : ""}.`);
    this.draw();
  }

  describe(how) {
    const { length } = store.importance.idle;
    this.idle.textContent = length === 0 ? "No idle layers" : length === 1 ? "Close the idle layer" : `Close ${length} idle layers`;
    this.idle.disabled = length === 0;
    this.element.querySelector(".how").textContent = `Idle layers can be closed together ${how}`;
  }

  range(form) {
    const [from, to] = [Number(form.get("from")), Number(form.get("to"))].sort((a, b) => a - b);
    state.toggle(closable.map((row) => row.layer).filter((layer) => layer + 1 >= from && layer + 1 <= to), true);
  }

  draw() {
    const open = closable.length - state.closed.size;
    if (document.activeElement !== this.keep) this.keep.value = open;
    this.kept.textContent = `${open} of ${closable.length}`;
    this.element.querySelector("[data-do=open]").setAttribute("aria-disabled", String(state.closed.size === 0)); // stays focused
  }
}

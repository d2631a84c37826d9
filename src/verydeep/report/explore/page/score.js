// The score over the samples of the page, with the layers that are open now.
class Score {
  constructor(element) {
    this.element = element;
    this.big = element.querySelector(".big");
    this.text = element.querySelector(".text");
    this.bar = element.querySelector("progress");
    state.on("closed weights", () => this.wait(0));
    state.on("scoring", ({ progress }) => this.wait(progress));
    state.on("score", () => this.draw());
  }

  wait(progress) {
    clearTimeout(this.timer);
    this.bar.value = progress;
    this.timer = setTimeout(() => { this.bar.hidden = false; this.element.classList.add("busy"); }, 120);
  }

  draw() {
    clearTimeout(this.timer);
    this.bar.hidden = true;
    this.element.classList.remove("busy");
    const { name, value, milliseconds } = state.score, full = state.fullScore, count = sum(scored);
    const write = (number) => (kind === "regression" ? inUnits(number) : percent(number));
    const open = closable.length - state.closed.size;
    this.big.replaceChildren(write(value), make("span", {}, ` ${name}`));
    const layers = !closable.length ? "" : open === closable.length ? ` All ${plural(open, "layer")} are open.` : ` ${open} of ${plural(closable.length, "layer")} open${full ? `; with all of them, ${write(full.value)}` : ""}.`;
    this.text.textContent = `on ${count} random ${store.split} samples.${layers}`;
    this.element.dataset.milliseconds = Math.round(milliseconds);
  }
}

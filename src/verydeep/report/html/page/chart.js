// Reads values from the SVG charts: the pointer or the arrow keys choose an x, and the line below shows the values.
class Reader {
  constructor(svg) {
    this.svg = svg;
    this.chart = store.charts[svg.dataset.chart];
    this.readout = svg.parentElement.querySelector(".readout");
    this.hint = this.readout.textContent;
    this.cursor = svg.querySelector(".cursor");
    svg.addEventListener("pointermove", (event) => this.move(event));
    svg.addEventListener("pointerdown", (event) => this.move(event));
    svg.addEventListener("pointerleave", () => { if (document.activeElement !== svg) this.show(null); });
    svg.addEventListener("focus", () => { if (this.index === null) this.show(0); });
    svg.addEventListener("blur", () => this.show(null));
    svg.addEventListener("keydown", (event) => this.key(event));
    this.show(null);
  }

  move(event) {
    const at = event.offsetX / this.svg.getBoundingClientRect().width * this.svg.viewBox.baseVal.width, { across } = this.chart;
    this.show(across.reduce((best, place, i) => Math.abs(place - at) < Math.abs(across[best] - at) ? i : best, 0));
  }

  key(event) {
    const last = this.chart.x.length - 1, steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in steps)) return;
    event.preventDefault();
    this.show(Math.min(Math.max((this.index ?? 0) + steps[event.key], 0), last));
  }

  show(index) {
    this.index = index;
    this.cursor.toggleAttribute("hidden", index === null);
    this.cursor.style.display = index === null ? "none" : "";
    if (index === null) {
      this.readout.textContent = this.hint;
      return;
    }
    const { x, across, series, name, percent, sparse } = this.chart;
    this.cursor.setAttribute("x1", across[index]);
    this.cursor.setAttribute("x2", across[index]);
    const shown = sparse ? series.filter((curve) => curve.values[index] !== null) : series;
    const values = shown.map(({ name, values, low, high }) => `${name} ${say(values[index], percent)}`
      + (low && low[index] !== null ? ` (${say(low[index], percent)} to ${say(high[index], percent)})` : ""));
    this.readout.textContent = `${name} ${x[index]}: ${values.join(" · ")}`;
  }
}

for (const svg of document.querySelectorAll("svg.chart")) new Reader(svg);

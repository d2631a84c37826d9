// A group of heat maps of the same shape that share one cursor, one zoom and one line with all values.
class Group {
  constructor(element) {
    this.element = element;
    this.readout = element.querySelector(".readout");
    this.hint = this.readout.textContent;
    this.maps = [...element.querySelectorAll("canvas[data-map]")].map((canvas) => new Heat(canvas));
    this.cursor = null;
    this.reset();
    for (const map of this.maps) this.listen(map);
    for (const [name, action] of [["in", () => this.zoom(1.5)], ["out", () => this.zoom(1 / 1.5)], ["reset", () => this.reset()], ["save", () => this.save()]]) {
      element.querySelector(`[data-do=${name}]`).addEventListener("click", () => { action(); this.draw(); });
    }
    new ResizeObserver(() => this.draw()).observe(element);
  }

  reset() {
    const { rows, columns } = this.maps[0];
    this.view = { row: 0, column: 0, rows, columns };
  }

  listen(map) {
    const { canvas } = map;
    canvas.addEventListener("pointermove", (event) => this.move(map, event));
    canvas.addEventListener("pointerdown", (event) => {
      this.move(map, event);
      this.drag = { x: event.offsetX, y: event.offsetY };
    });
    addEventListener("pointerup", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) this.point(null); });
    canvas.addEventListener("focus", () => { if (!this.cursor) this.point({ row: Math.floor(this.view.row), column: Math.floor(this.view.column) }); });
    canvas.addEventListener("blur", () => this.point(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    // the wheel zooms over a map that was clicked, or with Ctrl; otherwise it scrolls the page
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8);
      this.draw();
    }, { passive: false });
    map.select?.addEventListener("change", () => {
      map.page = Number(map.select.value);
      this.draw();
    });
  }

  move(map, event) {
    const { left, top, width, height } = map.box, { view } = this;
    if (this.drag && event.buttons) {
      this.shift((this.drag.y - event.offsetY) / height * view.rows, (this.drag.x - event.offsetX) / width * view.columns);
      this.drag = { x: event.offsetX, y: event.offsetY };
    }
    const row = Math.floor(view.row + (event.offsetY - top) / height * view.rows);
    const column = Math.floor(view.column + (event.offsetX - left) / width * view.columns);
    this.point(row >= 0 && column >= 0 && row < map.rows && column < map.columns ? { row, column } : null);
  }

  shift(rows, columns) {
    const { view } = this, map = this.maps[0];
    view.row = Math.min(Math.max(view.row + rows, 0), map.rows - view.rows);
    view.column = Math.min(Math.max(view.column + columns, 0), map.columns - view.columns);
  }

  zoom(factor) { // around the cursor
    const { view } = this, map = this.maps[0];
    const focus = this.cursor ?? { row: view.row + view.rows / 2, column: view.column + view.columns / 2 };
    const rows = Math.min(Math.max(view.rows / factor, Math.min(4, map.rows)), map.rows);
    const columns = Math.min(Math.max(view.columns / factor, Math.min(4, map.columns)), map.columns);
    view.row += (focus.row - view.row) * (1 - rows / view.rows);
    view.column += (focus.column - view.column) * (1 - columns / view.columns);
    Object.assign(view, { rows, columns });
    this.shift(0, 0);
  }

  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
      Home: [0, -Infinity], End: [0, Infinity] };
    const actions = { "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.reset(), Escape: () => this.reset() };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in steps || event.key in actions)) return;
    event.preventDefault();
    if (event.key in actions) actions[event.key]();
    const [down, right] = steps[event.key] ?? [0, 0], map = this.maps[0], from = this.cursor ?? { row: 0, column: 0 };
    const row = Math.min(Math.max(from.row + down, 0), map.rows - 1), column = Math.min(Math.max(from.column + right, 0), map.columns - 1);
    const { view } = this; // the view follows the cursor
    this.shift(Math.min(row - view.row, 0) + Math.max(row + 1 - view.row - view.rows, 0), Math.min(column - view.column, 0) + Math.max(column + 1 - view.column - view.columns, 0));
    this.point({ row, column });
  }

  point(cursor) {
    this.cursor = cursor;
    this.readout.textContent = cursor ? this.describe(cursor) : this.hint;
    this.draw();
  }

  describe({ row, column }) {
    const values = this.maps.map((map) => `${map.title} ${say(map.value(row, column), map.map.percent)}${map.isNoise(row, column) ? " (may be noise)" : ""}`);
    return `${this.where(0, row)}, ${this.where(1, column)}: ${values.join(" · ")}`;
  }

  where(axis, index) {
    const { map } = this.maps[0], what = axis ? map.columns : map.rows, step = map.steps[axis];
    const first = index * step, last = Math.min(first + step, map.whole[axis]);
    if (map.names.length) return `${what} ${map.names.slice(first, last).join(", ")}`;
    return step === 1 ? `${what} ${first + 1}` : `${what}s ${first + 1} to ${last} (mean)`;
  }

  save() { // all values of the group, as CSV
    const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const pages = this.maps.flatMap((map) => map.map.pages.length > 1 ? (map === this.maps[0] ? map.map.pages.map((name, page) => [name, map, page]) : []) : [[map.title, map, 0]]);
    const { rows, columns, map } = this.maps[0];
    const lines = [[map.rows, map.columns, ...pages.map(([name]) => name)].map(quote).join(",")];
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
      const cells = pages.map(([, heat, page]) => decode(heat.id).values[(page * rows + row) * columns + column]);
      lines.push([quote(this.where(0, row)), quote(this.where(1, column)), ...cells.map((value) => Number.isNaN(value) ? "" : value)].join(","));
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = `${this.element.id}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  draw() {
    for (const map of this.maps) map.draw(this.view, this.cursor);
  }
}

const groups = [...document.querySelectorAll(".maps")].map((element) => new Group(element));
for (const query of [dark, paper]) query.addEventListener("change", () => groups.forEach((group) => group.draw()));

const NARROW = 130; // pixels, below which only the ends of an axis are labelled

// One heat map of the journey: a row per layer, a column per block, with a colour bar below.
class HeatMap {
  // title: what it shows; note: in plain words; scale: the colour map, { kind, low, high, power }; slot: whose sample, or null.
  constructor({ id, title, note, scale, values, slot = null }) {
    Object.assign(this, { id, title, scale, values, slot });
    this.canvas = make("canvas", { class: "map", role: "img", "aria-label": `${title}. ${note}` });
    this.bar = make("canvas", { class: "bar", "aria-hidden": "true" });
    this.caption = make("figcaption", {}, title, make("span", { class: "soft" }, note));
    this.element = make("figure", { "data-panel": id }, this.caption, this.canvas, this.bar);
    this.columns = Math.max(...rows.map((row) => row.width), 1);
  }

  // The values of a row, a Float32Array, or null.
  row(number) {
    return this.values()?.[number] ?? null;
  }

  paint(view, reveal) {
    const colours = colourMap(this.scale), found = this.values();
    const height = view.count, sheet = document.createElement("canvas");
    Object.assign(sheet, { width: this.columns, height });
    const pen = sheet.getContext("2d"), image = pen.createImageData(this.columns, height);
    for (let line = 0; line < height; line++) {
      const values = found?.[view.first + line];
      if (!values || view.first + line >= reveal) continue;
      for (let column = 0; column < values.length; column++) {
        const k = 3 * Math.round(255 * place(this.scale, values[column])), at = 4 * (line * this.columns + column);
        for (let c = 0; c < 3; c++) image.data[at + c] = colours[k + c];
        image.data[at + 3] = 255;
      }
    }
    pen.putImageData(image, 0, 0);
    return sheet;
  }

  draw(view, reveal, box) {
    const [pen, width] = canvasFor(this.canvas);
    pen.fillStyle = colour("--card");
    pen.fillRect(0, box.top, width, box.height);
    pen.imageSmoothingEnabled = view.count > 2 * box.height; // several layers in a pixel are averaged
    pen.drawImage(this.paint(view, reveal), 0, box.top, width, box.height);
    markClosed(pen, view, box, width, this.id === "outputs" ? 0.45 : 0.9);
    markChosen(pen, view, box, width);
    this.drawBar();
  }

  drawBar() {
    const [pen, width] = canvasFor(this.bar), colours = colourMap(this.scale), { low, high } = this.scale;
    for (let x = 0; x < width; x++) {
      const k = 3 * Math.round(255 * x / width);
      pen.fillStyle = `rgb(${colours[k]} ${colours[k + 1]} ${colours[k + 2]})`;
      pen.fillRect(x, 2, 1.5, 6);
    }
    pen.fillStyle = colour("--soft");
    pen.textBaseline = "top";
    const marks = this.scale.marks ?? [low, (low + high) / 2, high];
    (width < NARROW ? [low, high] : marks).forEach((value) => {
      const at = place(this.scale, value);
      pen.textAlign = at < 0.05 ? "left" : at > 0.95 ? "right" : "center";
      pen.fillText(say(Number(value.toPrecision(2))), at * width, 12);
    });
  }
}

// A closed layer is faded: it only copies.
function markClosed(pen, view, box, width, alpha) {
  const high = box.height / view.count;
  pen.save();
  pen.globalAlpha = alpha;
  pen.fillStyle = colour("--paper");
  for (let line = 0; line < view.count; line++) {
    const { layer } = rows[view.first + line];
    if (layer !== null && state.closed.has(layer)) pen.fillRect(0, box.top + line * high, width, high + 0.3);
  }
  pen.restore();
}

function markChosen(pen, view, box, width) {
  const high = box.height / view.count, line = state.chosen - view.first;
  if (line < 0 || line >= view.count || rows.length === 0) return;
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 1.5;
  pen.strokeRect(0.75, box.top + line * high - 0.25, width - 1.5, Math.max(high, 2) + 0.5);
}

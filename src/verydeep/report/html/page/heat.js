// One heat map on a canvas: cells, numbers at its edges, the cursor, and its colour bar.
class Heat {
  constructor(canvas) {
    this.canvas = canvas;
    this.bar = canvas.parentElement.querySelector(".bar");
    this.id = canvas.dataset.map;
    this.map = store.maps[this.id];
    this.page = Number(canvas.dataset.page || 0);
    [this.rows, this.columns] = this.map.shape;
    this.select = canvas.parentElement.querySelector("select");
  }

  at(row, column) {
    return this.page * this.rows * this.columns + row * this.columns + column;
  }

  value(row, column) {
    return decode(this.id).values[this.at(row, column)];
  }

  isNoise(row, column) {
    const { noise } = decode(this.id);
    return noise !== null && noise[this.at(row, column)] === 1;
  }

  get title() {
    return this.map.pages.length > 1 ? this.map.pages[this.page] : this.map.name;
  }

  cells() { // cached; painted again only when the page or the colours change
    const colours = colourMap(this.map);
    if (this.sheet?.page !== this.page || this.sheet.colours !== colours) {
      this.sheet = { page: this.page, colours, canvas: this.paint(colours) };
    }
    return this.sheet.canvas;
  }

  paint(colours) { // one pixel per cell, to be stretched
    const { values, noise } = decode(this.id), first = this.at(0, 0);
    const sheet = document.createElement("canvas");
    sheet.width = this.columns;
    sheet.height = this.rows;
    const pen = sheet.getContext("2d"), image = pen.createImageData(this.columns, this.rows);
    const middle = colours.slice(128 * 3, 128 * 3 + 3); // values that may be noise are faded towards the colour of zero
    for (let i = 0; i < this.rows * this.columns; i++) {
      const value = values[first + i];
      if (Number.isNaN(value)) continue;
      const k = 3 * Math.round(255 * place(this.map, value));
      const fade = noise?.[first + i] ? 0.8 : 0;
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = (1 - fade) * colours[k + c] + fade * middle[c];
      image.data[4 * i + 3] = 255;
    }
    pen.putImageData(image, 0, 0);
    return sheet;
  }

  draw(view, cursor) {
    const [pen, width, height] = canvasFor(this.canvas);
    const named = this.map.names.length > 0;
    const longest = named ? Math.min(90, Math.max(...this.map.names.map((name) => pen.measureText(name).width))) : 0;
    const left = named ? longest + 8 : 34, bottom = named ? longest + 10 : 34;
    this.box = { left, top: 2, width: width - left - 8, height: height - bottom - 2 };
    pen.fillStyle = colour("--pad");
    pen.fillRect(left, 2, this.box.width, this.box.height);
    pen.imageSmoothingEnabled = false;
    const { left: x, top: y, width: w, height: h } = this.box;
    pen.drawImage(this.cells(), view.column, view.row, view.columns, view.rows, x, y, w, h);
    this.edges(pen, view, named, longest);
    if (cursor) this.mark(pen, view, cursor);
    this.drawBar();
  }

  edges(pen, view, named, longest) {
    const { left, top, width, height } = this.box;
    pen.fillStyle = colour("--soft");
    const labels = (axis, first, count, most) => {
      const step = this.map.steps[axis], last = first + count;
      if (named) {
        return [...Array(this.map.shape[axis]).keys()].filter((i) => i >= first && i < last && i % Math.ceil(count / 40) === 0)
          .map((i) => [i, this.map.names[i * step]]);
      }
      const whole = ticks(first * step, last * step, most).filter(Number.isInteger).map((n) => Math.max(n, 1)); // there is no layer 1.5
      return [...new Set(whole)].filter((n) => n <= last * step + 0.5).map((n) => [(n - 1) / step, String(n)]);
    };
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [row, text] of labels(0, view.row, view.rows, 8)) {
      const y = top + (row + 0.5 - view.row) / view.rows * height;
      if (y >= top && y <= top + height) pen.fillText(text, left - 5, y, longest || 28);
    }
    for (const [column, text] of labels(1, view.column, view.columns, 6)) {
      const x = left + (column + 0.5 - view.column) / view.columns * width;
      if (x < left || x > left + width) continue;
      pen.save();
      pen.translate(x, top + height + 5);
      if (named && longest > 20) pen.rotate(-Math.PI / 2);
      pen.textAlign = named && longest > 20 ? "right" : "center";
      pen.textBaseline = named && longest > 20 ? "middle" : "top";
      pen.fillText(text, 0, 0, longest || 60);
      pen.restore();
    }
    if (named) return;
    pen.textAlign = "center";
    pen.fillText(this.map.columns, left + width / 2, top + height + 26);
    pen.save();
    pen.translate(7, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(this.map.rows, 0, 0);
    pen.restore();
  }

  mark(pen, view, cursor) { // a dark outline around a light one is visible on every colour
    const { left, top, width, height } = this.box, w = width / view.columns, h = height / view.rows;
    const x = left + (cursor.column - view.column) * w, y = top + (cursor.row - view.row) * h;
    for (const [style, room] of [["#000", 2.5], ["#fff", 1]]) {
      pen.strokeStyle = style;
      pen.lineWidth = 1.5;
      pen.strokeRect(x - room, y - room, w + 2 * room, h + 2 * room);
    }
  }

  drawBar() {
    const [pen, width] = canvasFor(this.bar), colours = colourMap(this.map), left = 34, long = width - left - 20;
    for (let x = 0; x < long; x++) {
      const k = 3 * Math.round(255 * x / long);
      pen.fillStyle = `rgb(${colours[k]} ${colours[k + 1]} ${colours[k + 2]})`;
      pen.fillRect(left + x, 4, 1.5, 10);
    }
    pen.fillStyle = colour("--soft");
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const marks = this.map.power === 1 ? ticks(this.map.low, this.map.high, 4) : [0, 0.05, 0.2, 0.5, 1];
    for (const value of marks) {
      const x = left + place(this.map, value) * long;
      pen.fillRect(x, 14, 1, 4);
      pen.fillText(say(value, this.map.percent), x, 20);
    }
    if (this.map.start !== null) {
      const x = left + place(this.map, this.map.start) * long;
      pen.fillStyle = colour("--ink");
      pen.fillText("▲ started here", Math.max(x, 50), 31);
    }
  }
}

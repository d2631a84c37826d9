// Drawing: strokes on a canvas, placed like the training images; the network answers while one draws.
const SIDE = 224, DRAWING = "your drawing";

class Draw {
  constructor(element) {
    this.element = element;
    this.canvas = element.querySelector("canvas");
    Object.assign(this.canvas, { width: SIDE, height: SIDE });
    this.pen = this.canvas.getContext("2d", { willReadFrequently: true });
    this.drawings = { a: [], b: [] }; // the strokes for each slot
    this.replaced = {}; // by slot, the input that a drawing took the place of
    this.cursor = { x: SIDE / 2, y: SIDE / 2, isDown: false }; // of the keyboard
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, () => { this.isDrawing = false; });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    for (const name of ["focus", "blur"]) this.canvas.addEventListener(name, () => this.paint());
    element.querySelector("[data-do=clear]").addEventListener("click", () => this.clear());
    element.querySelector("[data-do=undo]").addEventListener("click", () => this.undo());
    for (const query of [dark, paper]) query.addEventListener("change", () => this.paint());
    state.on("input", ({ slot }) => { if (slot === state.slot && state.inputs[slot].name !== DRAWING) this.isWaiting = false; }); // chosen instead
    state.on("mode", () => { this.lift(); this.paint(); }); // another slot may be chosen
    this.paint();
  }

  get strokes() {
    return this.drawings[state.slot];
  }

  // End the line that is being drawn.
  lift() {
    this.isDrawing = false;
    this.cursor.isDown = false;
  }

  at(event) {
    const scale = SIDE / this.canvas.clientWidth;
    return [event.offsetX * scale, event.offsetY * scale];
  }

  begin(event) {
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.isDrawing = true;
    this.isPointer = true;
    this.strokes.push([this.at(event)]);
    this.changed();
  }

  move(event) {
    if (!this.isDrawing) return;
    const events = event.getCoalescedEvents?.() ?? [];
    this.strokes.at(-1).push(...(events.length ? events : [event]).map((each) => this.at(each)));
    this.changed();
  }

  key(event) {
    const moves = { ArrowUp: [0, -8], ArrowDown: [0, 8], ArrowLeft: [-8, 0], ArrowRight: [8, 0] };
    const { cursor } = this;
    this.isPointer = false;
    if (event.key in moves) {
      cursor.x = clamp(cursor.x + moves[event.key][0], 8, SIDE - 8);
      cursor.y = clamp(cursor.y + moves[event.key][1], 8, SIDE - 8);
      if (cursor.isDown) this.strokes.at(-1).push([cursor.x, cursor.y]);
    } else if (event.key === " ") {
      cursor.isDown = !cursor.isDown;
      if (cursor.isDown) this.strokes.push([[cursor.x, cursor.y]]);
    } else if (event.key === "Delete" || event.key === "Backspace") this.clear();
    else return;
    event.preventDefault();
    this.changed();
  }

  clear() {
    this.strokes.length = 0;
    this.lift();
    this.changed();
  }

  undo() {
    this.strokes.pop();
    this.lift(); // its line may be the one that is gone
    this.changed();
  }

  changed() {
    this.paint();
    this.answer();
  }

  lines(pen) {
    Object.assign(pen, { lineWidth: 0.085 * SIDE, lineCap: "round", lineJoin: "round" });
    for (const stroke of this.strokes) {
      pen.beginPath();
      for (const [x, y] of [stroke[0], ...stroke]) pen.lineTo(x, y);
      pen.stroke();
    }
  }

  paint() {
    this.element.querySelector(".hint").hidden = this.strokes.length > 0;
    const { pen, cursor } = this, isDark = store.inputs.ink.dark;
    pen.fillStyle = isDark ? "#fff" : "#000";
    pen.fillRect(0, 0, SIDE, SIDE);
    pen.strokeStyle = isDark ? "#000" : "#fff";
    this.lines(pen);
    if (document.activeElement !== this.canvas || this.isPointer) return;
    pen.fillStyle = colour("--c1");
    pen.beginPath();
    pen.arc(cursor.x, cursor.y, cursor.isDown ? 7 : 4, 0, 7);
    pen.fill();
  }

  // One answer after the other: strokes that come while the network computes are answered together.
  async answer() {
    if (this.isBusy) {
      this.isWaiting = true;
      return;
    }
    const { slot } = state, shown = state.inputs[slot], isShown = shown?.name === DRAWING;
    if (!this.strokes.length && !(isShown && this.replaced[slot])) return;
    this.isBusy = true;
    if (this.strokes.length) {
      if (!isShown) this.replaced[slot] = shown;
      await state.show({ raw: placeInk(this.ink(), SIDE, store.inputs) }, { slot, moves: false, name: DRAWING });
    } else {
      const { input, name, target } = this.replaced[slot];
      await state.show(input, { slot, moves: false, name, target });
    }
    this.isBusy = false;
    if (this.isWaiting) {
      this.isWaiting = false;
      this.answer();
    }
  }

  // How much of each pixel is drawn on.
  ink() {
    const sheet = document.createElement("canvas");
    Object.assign(sheet, { width: SIDE, height: SIDE });
    const pen = sheet.getContext("2d"), ink = new Float32Array(SIDE * SIDE);
    pen.strokeStyle = "#fff";
    this.lines(pen);
    const { data } = pen.getImageData(0, 0, SIDE, SIDE);
    for (let i = 0; i < ink.length; i++) ink[i] = data[4 * i + 3] / 255;
    return ink;
  }
}

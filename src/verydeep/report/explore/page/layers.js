// The column of switches: a bar per layer, as long as the layer is active, which closes the layer when it is clicked.
class Layers {
  constructor() {
    const what = hasGates ? "mean transform gate" : "relative size of its change";
    this.canvas = make("canvas", { class: "map switches", tabindex: "0", role: "application", "aria-roledescription": "layer switches",
      "aria-label": `Layers, with the ${what}. Up and down choose a layer, Space closes or opens it, Shift with Space a range, plus and minus zoom.` });
    this.axis = make("canvas", { class: "bar", "aria-hidden": "true" });
    const note = closable.length ? "Click to close or open. Bar: " + what + "." : "This network has no layers that can be closed.";
    this.element = make("figure", { "data-panel": "layers", class: "layers" }, make("figcaption", {}, "Layers", make("span", { class: "soft" }, note)), this.canvas, this.axis);
    this.left = 26;
  }

  draw(view, reveal, box) {
    const [pen, width] = canvasFor(this.canvas), high = box.height / view.count, left = this.left, room = width - left;
    const activity = state.traces.a?.activity ?? [], tall = Math.max(high * 0.72, Math.min(high, 1));
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((each) => each * high >= 12) ?? 1000;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (let line = 0; line < view.count; line++) {
      const number = view.first + line, row = rows[number], y = box.top + line * high, isClosed = row.layer !== null && state.closed.has(row.layer);
      const isLabelled = row.label === "" ? number === 0 && high >= 6 : (row.layer + 1) % step === 0 || (row.layer === 0 && (step < 3 || high > 8));
      const isNear = number !== state.chosen && Math.abs(number - state.chosen) * high < 11;
      if ((isLabelled && !isNear) || number === state.chosen) {
        pen.fillStyle = colour(number === state.chosen ? "--ink" : "--soft");
        pen.fillText(row.label || (number === 0 ? "in" : "·"), left - 5, clamp(y + high / 2, 6, box.top + box.height - 5));
      }
      if (row.layer === null) {
        pen.fillStyle = colour("--line");
        pen.fillRect(left, y + high / 2 - 0.5, room, 1);
        continue;
      }
      const top = y + (high - tall) / 2;
      pen.fillStyle = colour("--pad");
      if (isClosed) { // only the wire that copies is left
        pen.fillStyle = colour("--soft");
        pen.fillRect(left, y + high / 2 - Math.min(0.75, high / 4), room, Math.min(1.5, high / 2));
      } else {
        pen.fillRect(left, top, room, tall);
        if (number < reveal && activity[number] != null) {
          pen.fillStyle = colour("--accent");
          pen.fillRect(left, top, Math.max(room * Math.sqrt(activity[number]), 1), tall);
        }
      }
    }
    pen.save();
    pen.translate(left, 0);
    markChosen(pen, view, box, room);
    pen.restore();
    this.drawAxis(room);
  }

  drawAxis(room) {
    const [pen] = canvasFor(this.axis);
    pen.fillStyle = colour("--soft");
    pen.textBaseline = "top";
    if (!closable.length) return;
    for (const [value, align] of [[0, "left"], ...(room < 60 ? [] : [[0.25, "center"]]), [1, "right"]]) {
      pen.textAlign = align;
      pen.fillText(String(value), this.left + Math.sqrt(value) * room, 12);
    }
  }
}

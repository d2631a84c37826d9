// The chosen layer: what it does to this sample, in words, and its feature maps if it has any.
const MOST_MAPS = 64;

class Detail {
  constructor(element) {
    this.element = element;
    this.title = element.querySelector("h3");
    this.words = element.querySelector(".words");
    this.maps = element.querySelector(".features");
    this.button = element.querySelector("[data-do=switch]");
    this.button.addEventListener("click", () => state.toggle([rows[state.chosen].layer]));
    for (const [name, step] of [["before", -1], ["after", 1]]) element.querySelector(`[data-do=${name}]`).addEventListener("click", () => state.choose(state.chosen + step));
    state.on("chosen trace", () => this.draw());
    for (const query of [dark, paper]) query.addEventListener("change", () => this.draw());
  }

  async draw() {
    const row = rows[state.chosen], trace = state.traces.a;
    if (!row || !trace) return;
    const isClosed = row.layer !== null && state.closed.has(row.layer);
    this.title.textContent = row.title[0].toUpperCase() + row.title.slice(1);
    this.button.hidden = row.layer === null;
    this.button.textContent = isClosed ? "Open this layer" : "Close this layer";
    this.words.textContent = this.sentences(row, trace, isClosed).join(" ");
    if (!isConvolutional) return;
    const { output, gate } = await state.backend.ask({ do: "detail", slot: "a", step: row.step });
    const [channels, height = 1, width = 1] = steps[row.step].out;
    if (height * width === 1) return this.maps.replaceChildren();
    const figures = [[output, `Feature maps (block outputs)`, this.scaleOf(output)]];
    if (gate !== null) figures.push([gate, "Gate maps (transform gates): where it transforms", { kind: "sequential", low: 0, high: 1, power: 0.5 }]);
    this.maps.replaceChildren(...figures.map(([values, title, scale]) => this.tiles(values, title, scale, channels, height, width)));
  }

  sentences(row, trace, isClosed) {
    const gates = trace.gates[state.chosen], found = [], what = isConvolutional ? "feature maps" : "blocks";
    if (row.layer === null) found.push("It transforms everything and cannot be closed.");
    else if (isClosed) found.push("It is closed: it copies its input unchanged, as if it were not there.");
    else if (gates) {
      const open = gates.filter((value) => value > 0.5).length;
      found.push(`Its gates let ${percent(trace.activity[state.chosen])} of the transformed signal through on average; ${open} of ${gates.length} ${what} are more open than closed.`);
    } else if (trace.activity[state.chosen] !== null) found.push(`It adds a change of ${percent(trace.activity[state.chosen])} of the size of its output.`);
    const before = trace.answers[state.chosen - 1], after = trace.answers[state.chosen];
    if (after) {
      const [was, is] = [before && inWords(read(before)), inWords(read(after))];
      found.push(was && was !== is ? `It turns the answer from ${was} into ${is}.` : `The answer after it would be ${is}.`);
    }
    const { order, idle } = store.importance;
    if (row.layer !== null && order.length > 1) {
      found.push(idle.includes(row.layer) ? "It is one of the idle layers." : `By importance it is number ${order.length - order.indexOf(row.layer)} of ${order.length}.`);
    }
    return found;
  }

  scaleOf(values) {
    const most = values.reduce((top, value) => Math.max(top, Math.abs(value)), 1e-6), least = values.reduce((low, value) => Math.min(low, value), 0);
    return least < 0 ? { kind: "diverging", low: -most, high: most, power: 1 } : { kind: "sequential", low: 0, high: most, power: 1 };
  }

  tiles(values, title, scale, channels, height, width) {
    const shown = Math.min(channels, MOST_MAPS), colours = colourMap(scale);
    const tiles = [...Array(shown).keys()].map((channel) => {
      const tile = make("canvas", { width, height, title: `feature map ${channel + 1}` });
      const pen = tile.getContext("2d"), image = pen.createImageData(width, height);
      for (let i = 0; i < width * height; i++) {
        const k = 3 * Math.round(255 * place(scale, values[channel * width * height + i]));
        for (let c = 0; c < 3; c++) image.data[4 * i + c] = colours[k + c];
        image.data[4 * i + 3] = 255;
      }
      pen.putImageData(image, 0, 0);
      return tile;
    });
    const rest = channels > shown ? `, the first ${shown} of ${channels}` : "";
    return make("figure", {}, make("figcaption", {}, `${title}${rest}`), make("div", { class: "tiles", role: "img", "aria-label": `${title} of ${rows[state.chosen].title}` }, ...tiles));
  }
}

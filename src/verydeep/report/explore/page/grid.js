// The samples of the page: pictures or rows to choose from, those with wrong answers first.
const SHOWN = 60; // at first

class Grid {
  constructor(element) {
    this.element = element;
    this.list = element.querySelector(".grid");
    this.list.classList.toggle("rows", !preparation.isImage);
    this.filter = element.querySelector("select");
    this.more = element.querySelector("[data-do=more]");
    this.shown = SHOWN;
    this.filter.append(make("option", { value: "all" }, "all samples"), ...(kind === "regression" ? [] : [make("option", { value: "wrong" }, "wrong answers")]),
      ...groups.map((group, at) => make("option", { value: String(at) }, group.name)));
    this.filter.addEventListener("change", () => { this.shown = SHOWN; this.fill(); });
    this.more.addEventListener("click", () => { this.shown += 200; this.fill(); });
    this.list.addEventListener("keydown", (event) => this.key(event));
    state.on("score", () => (this.filter.value === "wrong" ? this.fill() : this.mark()));
    state.on("input mode", () => this.mark());
    this.fill();
  }

  get wanted() {
    const all = [...targets.keys()], { value } = this.filter;
    if (value === "all") return all;
    if (value === "wrong") return all.filter((at) => state.score && !state.score.correct[at]);
    return groups[Number(value)].samples;
  }

  fill() {
    const wanted = this.wanted;
    this.buttons = new Map(wanted.slice(0, this.shown).map((sample) => [sample, this.button(sample)]));
    this.list.replaceChildren(...this.buttons.values());
    if (!wanted.length) this.list.append(make("p", { class: "soft" }, "None."));
    this.more.hidden = wanted.length <= this.shown;
    this.mark();
  }

  button(sample) {
    const picture = preparation.isImage ? make("canvas") : null;
    if (picture) paintImage(picture, preparation.raw(sample));
    const text = preparation.isImage ? null : make("span", {}, rowInWords(preparation.raw(sample)));
    const button = make("button", { type: "button", "data-sample": String(sample), tabindex: "-1", "aria-label": `Sample ${sample + 1}, ${targetInWords(sample)}`, title: targetInWords(sample) }, picture ?? text);
    button.addEventListener("click", () => showSample(sample));
    return button;
  }

  mark() {
    const chosen = Object.entries(state.inputs).filter(([slot]) => slot === "a" || state.mode === "two").map(([slot, input]) => [input.input.sample, slot]);
    let tabbable = null, isAnyWrong = false;
    for (const [sample, button] of this.buttons) {
      const slot = chosen.find(([which]) => which === sample)?.[1];
      button.setAttribute("aria-pressed", String(slot !== undefined));
      button.dataset.slot = state.mode === "two" ? slot ?? "" : "";
      button.classList.toggle("wrong", state.score?.correct?.[sample] === false);
      button.tabIndex = -1;
      isAnyWrong ||= button.classList.contains("wrong");
      if (slot === state.slot || tabbable === null) tabbable = button;
    }
    this.element.querySelector(".framed").hidden = !isAnyWrong;
    if (tabbable) tabbable.tabIndex = 0; // one stop for the Tab key; arrows move inside
  }

  key(event) {
    const buttons = [...this.buttons.values()], at = buttons.indexOf(document.activeElement);
    const across = Math.max(1, Math.round(this.list.clientWidth / (buttons[0]?.offsetWidth + 4 || 1)));
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: preparation.isImage ? across : 1, ArrowUp: preparation.isImage ? -across : -1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || at < 0) return;
    event.preventDefault();
    buttons[clamp(at + steps[event.key], 0, buttons.length - 1)].focus();
  }
}

function showSample(sample, slot = state.slot) {
  return state.show({ sample }, { slot, target: targets[sample], name: `sample ${sample + 1}` });
}

function targetInWords(sample) {
  if (kind === "classification") return `true class ${names[targets[sample]]}`;
  if (kind === "multilabel") return `true labels ${names.filter((_, label) => targets[sample][label] > 0.5).join(", ") || "none"}`;
  return names.map((name, at) => `true ${name} ${inUnits(targets[sample][at])}`).join(", ");
}

// The first cells of a row.
function rowInWords(cells) {
  return store.inputs.columns.slice(0, 4).map((column, at) => `${shortened(column.name, 16)} ${cellInWords(column, cells[at])}`).join(" · ") + (cells.length > 4 ? " · …" : "");
}

function cellInWords(column, cell) {
  if (cell === null) return "missing";
  if (column.kind === "boolean") return cell ? "true" : "false";
  if (column.kind === "date") return new Date(cell * 864e5).toISOString().slice(0, 10);
  return typeof cell === "number" ? inUnits(cell) + (column.percent ? "%" : "") : shortened(cell, 20);
}

// The input panel: tabs for the ways to choose an input, and what the network sees.
class Inputs {
  constructor(element) {
    this.element = element;
    this.preview = element.querySelector(".preview");
    const canPrepare = !store.inputs.refused, { isImage } = preparation;
    const uses = { samples: true, draw: isImage && canPrepare && store.inputs.ink !== null, upload: isImage && canPrepare && [1, 3].includes(store.inputs.shape[0]), row: !isImage && canPrepare };
    this.tabs = [...element.querySelectorAll("[role=tab]")].filter((tab) => {
      tab.hidden = !uses[tab.dataset.tab];
      return !tab.hidden;
    });
    element.querySelector("[role=tablist]").hidden = this.tabs.length < 2;
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.open(tab.dataset.tab));
      tab.addEventListener("keydown", (event) => this.key(event));
    }
    new Grid(byId("panel-samples"));
    if (uses.draw) new Draw(byId("panel-draw"));
    if (uses.upload) new Upload(byId("panel-upload"));
    if (uses.row) new RowForm(byId("panel-row"));
    byId("panel-upload").querySelector(".grey").hidden = store.inputs.shape?.[0] !== 1;
    const refused = element.querySelector(".refused");
    refused.hidden = canPrepare;
    if (!canPrepare) refused.textContent = `This page cannot prepare new input for this network: ${store.inputs.refused}. The samples are stored as the network sees them.`;
    for (const button of element.querySelectorAll("[data-slot-button]")) {
      button.addEventListener("click", () => state.set({ slot: button.dataset.slotButton }));
    }
    state.on("input mode", () => this.draw());
    this.open("samples");
  }

  open(name) {
    for (const tab of this.tabs) {
      const isOpen = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(isOpen));
      tab.tabIndex = isOpen ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !isOpen;
    }
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = this.tabs.indexOf(document.activeElement), next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
    this.open(next.dataset.tab);
    next.focus();
  }

  draw() {
    const slots = state.mode === "two" ? ["a", "b"] : ["a"];
    this.element.querySelector(".slots").hidden = state.mode !== "two";
    for (const button of this.element.querySelectorAll("[data-slot-button]")) button.setAttribute("aria-pressed", String(button.dataset.slotButton === state.slot));
    this.preview.replaceChildren(...slots.filter((slot) => state.inputs[slot]).map((slot) => {
      const { input, name, target } = state.inputs[slot];
      const text = make("figcaption", {}, slots.length > 1 ? `${slot.toUpperCase()}: ` : "", name, target === null ? null : make("span", { class: "soft" }, truthInWords(target)));
      const picture = preparation.isImage ? make("canvas", { role: "img", "aria-label": "What the network sees" }) : null;
      if (picture) paintImage(picture, input.raw ?? preparation.raw(input.sample));
      return make("figure", {}, picture, text);
    }));
  }
}

function truthInWords(target) {
  if (kind === "classification") return `true ${groupNoun}: ${shortened(names[target], LONGEST)}`;
  if (kind === "multilabel") return `true labels: ${shortened(names.filter((_, label) => target[label] > 0.5).join(", "), LONGEST) || "none"}`;
  return names.map((name, at) => `true ${name}: ${inUnits(target[at])}`).join(", ");
}

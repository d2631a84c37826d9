// A guided tour: a card beside the part of the page that it explains.
const image = preparation.isImage, deep = closable.length > 0;
const STOPS = [
  { at: "#input", title: "Choose what goes in", text: image ? "These are samples that the network never learned from; the first ones it gets wrong. Choose one, or draw your own if there is a tab for it." : "These are rows that the network never learned from. Choose one, then change its values and see what happens." },
  { at: "[data-panel=outputs]", title: "It travels from top to bottom", text: `Each line is a layer, each cell one of its ${isConvolutional ? "feature maps" : "blocks"}. Stripes that run down are values that layers pass on unchanged. The paper calls these values block outputs, y.` },
  ...(hasGates ? [{ at: "[data-panel=gates]", title: "Gates decide: transform or copy", text: "Where a transform gate t is bright, the layer replaces the value by something new; where it is dark, it copies its input: y = h · t + x · (1 − t). Choose another sample: other gates open. The paper calls this routing." }] : []),
  ...(formsAnswers ? [{ at: "[data-panel=ribbon-a]", title: "Watch the answer form", text: "This asks the classifier after every layer, as if the network ended there. Often the answer is settled long before the last layer." }] : []),
  ...(deep ? [{ at: "[data-panel=layers]", title: "Close a layer", text: "A click closes a layer: it copies its input, as if it were not there. The paper calls this a lesion. Shift and a click close all layers in between.", act: ["Close one", () => state.toggle([store.importance.order[0]], true)] },
    { at: "#closing", title: "How many layers does it need?", text: "Close all idle layers, or keep only the most important ones, and see what happens to the answer and to the score over all samples.", act: ["Close the idle ones", () => state.close(store.importance.idle)] }] : []),
  ...(store.snapshots.length ? [{ at: "#training", title: "See how it learned", text: "The weights were also kept during training. Before it, the answer is a guess. Play the training and watch the maps: the layers learn what to change and what to copy.", act: ["Play", () => byId("training").querySelector("button").click()] }] : []),
  { at: "#compare", title: "Compare", text: `Put two samples or two ${groupNoun === "class" ? "classes" : `${groupNoun}s`} side by side: the difference shows which blocks are used for one and not for the other. That is all. Play!`, act: deep ? ["Open all layers", () => state.close([])] : null },
];

class Tour {
  constructor() {
    this.card = byId("tour");
    this.at = -1;
    byId("start-tour").addEventListener("click", () => this.go(0));
    byId("invite").querySelector("[data-do=start]").addEventListener("click", () => this.go(0));
    byId("invite").querySelector("[data-do=dismiss]").addEventListener("click", () => {
      this.dismiss();
      byId("start-tour").focus();
    });
    this.card.querySelector("[data-do=next]").addEventListener("click", () => this.go(this.at + 1));
    this.card.querySelector("[data-do=back]").addEventListener("click", () => this.go(this.at - 1));
    this.card.querySelector("[data-do=end]").addEventListener("click", () => this.end());
    this.act = this.card.querySelector("[data-do=act]");
    this.act.addEventListener("click", () => STOPS[this.at].act[1]());
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.at >= 0) this.end(); });
    for (const name of ["resize", "scroll"]) addEventListener(name, () => this.place(), { passive: true });
    byId("start-tour").hidden = rows.length === 0;
    byId("invite").hidden = seen() || rows.length === 0;
  }

  go(to) {
    if (to >= STOPS.length) return this.end();
    if (this.at < 0) {
      this.before = document.activeElement;
      byId("mode-one").click(); // the tour is about the first view
    }
    document.querySelector(".toured")?.classList.remove("toured");
    this.at = Math.max(to, 0);
    byId("invite").hidden = true;
    const { at, title, text, act } = STOPS[this.at];
    if (!document.querySelector(at)) byId("mode-one").click(); // the reader went on to another view
    const target = document.querySelector(at);
    this.card.hidden = false;
    this.card.querySelector("h2").textContent = title;
    this.card.querySelector(".text").textContent = text;
    this.card.querySelector(".count").textContent = `${this.at + 1} of ${STOPS.length}`;
    this.card.querySelector("[data-do=back]").disabled = this.at === 0;
    this.card.querySelector("[data-do=next]").textContent = this.at === STOPS.length - 1 ? "Done" : "Next";
    this.act.hidden = !act;
    if (act) this.act.textContent = act[0];
    target.classList.add("toured");
    target.scrollIntoView({ block: innerWidth < 700 ? "start" : "center", behavior: "instant" });
    this.place();
    this.card.focus({ preventScroll: true });
  }

  // Beside its target if there is room, else above the lower edge of the window.
  place() {
    if (this.at < 0) return;
    const box = document.querySelector(STOPS[this.at].at)?.getBoundingClientRect(); // none in another view
    const { style, offsetWidth: width, offsetHeight: height } = this.card;
    const right = box?.right + 14 + width <= innerWidth, left = box?.left - 14 - width >= 0;
    if (innerWidth < 700 || (!right && !left)) {
      Object.assign(style, { left: `${Math.max((innerWidth - width) / 2, 8)}px`, top: `${innerHeight - height - 12}px` });
      return;
    }
    const top = clamp(box.top + Math.min(box.height, innerHeight) / 2 - height / 2, 12, innerHeight - height - 12);
    Object.assign(style, { left: `${right ? box.right + 14 : box.left - 14 - width}px`, top: `${top}px` });
  }

  end() {
    document.querySelector(".toured")?.classList.remove("toured");
    this.card.hidden = true;
    this.at = -1;
    this.dismiss();
    this.before?.isConnected && this.before.focus();
  }

  dismiss() {
    byId("invite").hidden = true;
    try {
      localStorage.setItem("verydeep-tour", "seen");
    } catch { /* a browser may forbid it to pages from disk */ }
  }
}

function seen() {
  try {
    return localStorage.getItem("verydeep-tour") === "seen";
  } catch {
    return false;
  }
}

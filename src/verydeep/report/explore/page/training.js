// Playing the training: a slider over the weights that the run kept after some epochs, ending with its own.
class Training {
  constructor(element) {
    this.slider = element.querySelector("input");
    this.text = element.querySelector("output");
    this.button = element.querySelector("button");
    this.last = store.snapshots.length;
    element.hidden = this.last === 0;
    this.slider.max = this.last;
    this.slider.value = this.last;
    this.slider.addEventListener("input", () => { this.stop(); this.show(); });
    this.button.addEventListener("click", () => (this.isPlaying ? this.stop() : this.play()));
    this.describe();
  }

  describe() {
    const at = Number(this.slider.value), epoch = store.snapshots[at]?.epoch;
    this.text.textContent = at === this.last ? "trained" : epoch === 0 ? "before training" : `after ${plural(epoch, "epoch")}`;
    this.slider.setAttribute("aria-valuetext", this.text.textContent);
  }

  // One change after the other: those that come while the network computes are skipped but for the last.
  async show() {
    this.describe();
    if (this.isBusy) return;
    this.isBusy = true;
    let shown = null;
    while (shown !== this.slider.value) {
      shown = this.slider.value;
      await state.use(Number(shown));
    }
    this.isBusy = false;
  }

  async play() {
    const mine = this.isPlaying = {}; // if stopped and played again at once, the former play ends
    this.button.textContent = "Stop";
    for (let at = 0; at <= this.last && this.isPlaying === mine; at++) {
      this.slider.value = at;
      await Promise.all([this.show(), new Promise((resolve) => setTimeout(resolve, 900))]);
    }
    if (this.isPlaying === mine) this.stop();
  }

  stop() {
    this.isPlaying = null;
    this.button.textContent = "Play the training";
  }
}

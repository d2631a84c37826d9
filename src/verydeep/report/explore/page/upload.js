// Images from the reader's disk, resized as the command line does it. They never leave the page.
class Upload {
  constructor(element) {
    this.field = element.querySelector("input[type=file]");
    this.invert = element.querySelector("[name=invert]");
    this.problem = element.querySelector(".problem");
    this.image = null;
    this.field.addEventListener("click", () => { this.field.value = ""; }); // so that the same file can be chosen again
    this.field.addEventListener("change", () => this.open(this.field.files[0]));
    this.invert.addEventListener("change", () => this.show());
    const zone = element;
    zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      this.open(event.dataTransfer.files[0]);
    });
  }

  async open(file) {
    if (!file) return;
    this.problem.textContent = "";
    try {
      const image = await createImageBitmap(file);
      const scale = Math.min(1, 1024 / Math.max(image.width, image.height)); // a photograph of any size
      const width = Math.max(1, Math.round(image.width * scale)), height = Math.max(1, Math.round(image.height * scale));
      const sheet = document.createElement("canvas");
      Object.assign(sheet, { width, height });
      const pen = sheet.getContext("2d");
      pen.drawImage(image, 0, 0, width, height);
      this.image = { rgba: pen.getImageData(0, 0, width, height).data, size: [height, width], name: file.name };
      await this.show();
    } catch {
      this.problem.textContent = `${shortened(file.name, 60)} cannot be read as an image.`;
    }
  }

  async show() {
    if (this.image === null) return;
    const { rgba, size, name } = this.image;
    await state.show({ raw: fromPhotograph(rgba, size, store.inputs, this.invert.checked) }, { name: shortened(name, 40) });
  }
}

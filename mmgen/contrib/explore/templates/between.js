// ---------------------------------------------------------------- from one word to another, with the noise held fixed

const STEPS = 8; // places between two words at which z is drawn; it is interpolated between them

class Between {
  constructor(part, source, container) {
    Object.assign(this, { part, source, place: 0, from: ANY, to: ANY });
    this.anchors = new Map();
    this.menu = make("select");
    this.ends = [make("select"), make("select")];
    this.slider = make("input", { type: "range", min: 0, max: 100, step: 1, value: 0, "aria-label": "From one word to the other" });
    this.menus = part.menus.flatMap(({ values, attribute }, m) => (values.length > 1 && attribute >= 0 ? [m] : []));
    this.menus.forEach((m) => this.menu.append(new Option(part.menus[m].name, m)));
    this.figures = source.figures.map((_, n) => make("figure", {}, canvasFor(source, undefined, { "aria-label": `picture ${n + 1}` })));
    const row = make("div", { class: "pictures" }, ...this.figures);
    row.style.setProperty("--count", Math.max(4, Math.min(8, this.figures.length)));
    const controls = make("div", { class: "menus" },
      make("label", {}, "change", this.menu), make("label", {}, "from", this.ends[0]), this.slider, make("label", {}, "to", this.ends[1]));
    const about = make("p", { class: "muted small" }, "The noise of each picture and its other words stay; only this word changes. Move the slider.");
    container.append(make("div", { class: "between", role: "group", "aria-label": "From one word to another" },
      make("h3", {}, "From one word to another"), about, controls, row));
    this.menu.addEventListener("change", () => this.choose(Number(this.menu.value), ANY, ANY));
    this.ends.forEach((select) => select.addEventListener("change", () => this.choose(this.m, Number(this.ends[0].value), Number(this.ends[1].value))));
    this.slider.addEventListener("input", () => this.move(Number(this.slider.value) / 100));
    this.slider.addEventListener("change", () => part.writeAddress());
    part.listeners.push(() => this.follow());
    if (this.menus.length) this.choose(this.menus[0], ANY, ANY, false);
    else container.lastChild.hidden = true;
  }

  // Two words of a menu; where they are left out, the chosen one and another.
  choose(m, from, to, show = true) {
    const { values } = this.part.menus[m];
    const chosen = this.part.wish.chosen[m];
    this.m = m;
    this.from = from !== ANY ? from : chosen !== ANY ? chosen : 0;
    this.to = to !== ANY && to !== this.from ? to : (this.from + 1) % values.length;
    this.menu.value = m;
    this.ends.forEach((select, end) => {
      select.replaceChildren(...values.map((word, value) => new Option(word, value)));
      select.value = end ? this.to : this.from;
    });
    if (show) this.renew();
  }

  // After a change of the chosen words.
  follow() {
    const chosen = this.part.wish.chosen[this.m];
    if (chosen !== ANY && chosen !== this.from) this.choose(this.m, chosen, chosen === this.to ? this.from : this.to, false);
    this.renew();
  }

  renew() {
    this.anchors.clear();
    this.move(this.place);
  }

  // z of picture `n` at one of the places: the flow reads the mean of both descriptions, weighed.
  anchor(n, step) {
    const key = n * (STEPS + 1) + step;
    if (!this.anchors.has(key)) {
      const whole = this.part.complete(n);
      const [one, other] = [this.from, this.to].map((value) => describe(this.part.codes(whole.map((own, m) => (m === this.m ? value : own)))));
      const context = one.map((value, place) => value + ((other[place] - value) * step) / STEPS);
      this.anchors.set(key, this.source.draws.draw(this.part.noise(n), context, this.source.steered));
    }
    return this.anchors.get(key);
  }

  latent(n) {
    const at = this.place * STEPS;
    const step = Math.min(STEPS - 1, Math.floor(at));
    if (at === step) return this.anchor(n, step);
    const [low, high] = [this.anchor(n, step), this.anchor(n, step + 1)];
    return low.map((value, d) => value + (high[d] - value) * (at - step));
  }

  move(place) {
    this.place = place;
    this.slider.value = Math.round(100 * place);
    const [from, to] = [this.from, this.to].map((value) => this.part.word(this.m, value));
    const share = Math.round(100 * place);
    this.slider.setAttribute("aria-valuetext", `${100 - share} % ${from}, ${share} % ${to}`);
    this.figures.forEach((figure, n) => {
      const canvas = figure.firstChild;
      forget(figure);
      canvas.dataset.ready = "";
      later(figure, () => {
        paint(canvas, this.latent(n));
        canvas.dataset.ready = "yes";
      });
      canvas.setAttribute("aria-label", `picture ${n + 1}, ${100 - share} % ${from}, ${share} % ${to}`);
    });
  }

  write(parameters) {
    if (!this.place) return;
    const { name, values } = this.part.menus[this.m];
    [[".change", name], [".from", values[this.from]], [".to", values[this.to]], [".at", Math.round(100 * this.place)]].forEach((pair) => parameters.append(...pair));
  }

  read(parameters) {
    const m = this.menus.find((place) => this.part.menus[place].name === parameters.get(".change"));
    if (m === undefined) return;
    const { values } = this.part.menus[m];
    this.choose(m, values.indexOf(parameters.get(".from")), values.indexOf(parameters.get(".to")), false);
    this.place = Math.min(1, Math.max(0, Number(parameters.get(".at")) / 100 || 0));
  }
}
for (const part of parts) {
  const box = make("div", { class: "part" });
  byId("parts").append(box);
  part.build(box);
}
addEventListener("hashchange", () => parts.forEach((part) => part.readAddress() && part.choose(false)));
// Links to sections leave the words in the address.
for (const link of document.querySelectorAll("nav a[href^='#']")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const section = byId(link.getAttribute("href").slice(1));
    section.scrollIntoView({ behavior: still.matches ? "auto" : "smooth" });
    section.tabIndex = -1;
    section.focus({ preventScroll: true });
  });
}
if (!parts.length) {
  const hint = "Nothing here reads words: fit something to descriptions with mmgen fit-aggregate, and name its file as well.";
  byId("parts").append(make("p", { class: "notice" }, hint));
}
if (data.references.length) {
  const sources = make("div", { class: "sources" });
  byId("references").append(make("p", { class: "muted" }, "For comparison, drawn without words:"), sources);
  for (const described of data.references) {
    const source = new Source(described, data.number);
    source.build(sources);
    source.show();
  }
}

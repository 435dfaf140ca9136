// ---------------------------------------------------------------- pictures for words

class Source {
  constructor(described, number) {
    Object.assign(this, described);
    this.number = number;
    this.pictures = picturesOf(described.pictures);
    this.judged = bytes(described.judged);
    this.places = described.rows && new Map(described.rows.map((row, place) => [row, place]));
    this.densities = described.density && new Sheets(described.density);
  }

  // Where the answers to description `row` are; undefined where there are none.
  place(row) {
    return this.places ? this.places.get(row) : row;
  }

  build(container, part) {
    this.line = make("p", { class: "muted small" });
    this.figures = [];
    const row = make("div", { class: "pictures" });
    row.style.setProperty("--count", Math.max(4, Math.min(8, this.number)));
    for (let n = 0; this.pictures && n < this.number; n++) {
      const figure = make("figure", {}, this.frame(n), make("figcaption"));
      if (part) part.twins(figure, n);
      this.figures.push(figure);
      row.append(figure);
    }
    const formula = make("p", { class: "muted small" }, this.about ? `${this.name}: ${this.about}` : this.name);
    const about = make("div", { class: "about" }, make("h3", {}, this.plain), formula, this.line);
    this.box = make("div", { class: "source", role: "group", "aria-label": `${this.plain}, ${this.name}` }, about, row);
    container.append(this.box);
  }

  // The canvas of picture `n`; in a button that takes its z to the sliders where the page decodes it itself.
  frame(n) {
    const canvas = canvasFor(this.pictures);
    if (!live || !data.traversals) return canvas;
    canvas.removeAttribute("role");
    const button = makeButton(canvas, () => takeToSliders(this.pictures.latent(this.shown * this.number + n)), {
      tabindex: n ? -1 : 0,
      title: "take it to the sliders",
    });
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const next = step && this.figures[n + step];
      if (!next) return;
      event.preventDefault();
      next.querySelector("button").focus();
    });
    return button;
  }

  // Pictures of description `row`; `asked` are its attribute codes, null where nothing is asked.
  show(row, asked) {
    const place = this.place(row);
    this.shown = place;
    let right = 0;
    let wanted = 0;
    this.figures.forEach((figure, n) => {
      figure.hidden = place === undefined;
      if (place === undefined) return;
      const canvas = figure.querySelector("canvas");
      const caption = figure.querySelector("figcaption");
      const number = place * this.number + n;
      this.pictures.draw(canvas, number);
      const label = [`picture ${n + 1} of ${this.name}`];
      let wrong = false;
      caption.textContent = "";
      if (this.judged) {
        const width = words.names.length;
        const seen = this.judged.subarray(number * width, (number + 1) * width);
        const compared = asked ? [...asked.keys()].filter((a) => asked[a] !== UNKNOWN) : [];
        const differ = compared.filter((a) => asked[a] !== seen[a]);
        const own = compared.filter((a) => !told.includes(a));
        wanted += own.length;
        right += own.filter((a) => asked[a] === seen[a]).length;
        wrong = differ.length > 0;
        if (wrong) caption.replaceChildren("✗ ", ...unbroken(differ.map((a) => valueOf(a, seen[a]))));
        else if (compared.length) caption.textContent = "✓";
        label.push(`judge reads ${reading(seen)}`);
        if (compared.length) label.push(wrong ? "not as asked" : "as asked");
      }
      figure.classList.toggle("wrong", wrong);
      (canvas.closest("button") ?? canvas).setAttribute("aria-label", label.join(": "));
    });
    const said = [];
    if (place === undefined) said.push("Guidance needs words to hold to: choose some.");
    if (wanted) said.push(`Here ${right} of ${wanted} words right`);
    if (this.verdict) said.push(this.verdict);
    this.line.textContent = said.join("; ");
  }
}

// The density of codes from which the model reads one description's words, where no posterior on the page is fitted to it.
class Belief {
  constructor({ density, outside }, row) {
    Object.assign(this, { plain: "what the model believes", name: "p(z|y)", kind: "true", row, outside, figures: [] });
    this.densities = new Sheets(density);
  }

  place(row) {
    return row === this.row ? 0 : undefined;
  }
}

const quoted = (text) => `'${text.replaceAll("'", `'"'"'`)}'`;

// Descriptions of one kind: menus, which may stand in several places, and the posteriors that answer.
class Part {
  constructor(described, place) {
    Object.assign(this, described);
    this.id = place;
    this.asked = bytes(described.asked);
    this.rowOf = new Map(this.keys.map((key, row) => [key.join(), row]));
    this.sources = described.sources.map((source) => new Source(source, data.number));
    this.belief = described.belief && new Belief(described.belief, this.first);
    this.row = this.first;
    this.sets = [];
    this.listeners = [];
  }

  // One set of menus; all sets show the same choice.
  menusInto(container) {
    const selects = this.menus.map((menu, place) => {
      const select = make("select", { "data-menu": menu.name });
      if (menu.any) select.append(new Option("any", ANY));
      menu.values.forEach((word, value) => select.append(new Option(word, value)));
      select.addEventListener("change", () => {
        const key = this.keys[this.row].slice();
        key[place] = Number(select.value);
        this.choose(this.rowOf.get(key.join()) ?? this.row);
      });
      container.append(make("label", {}, menu.name, select));
      return select;
    });
    this.sets.push(selects);
  }

  // Values that lead to no description of this page cannot be chosen.
  refresh(selects) {
    const key = this.keys[this.row];
    selects.forEach((select, place) => {
      for (const option of select.options) {
        const other = key.slice();
        other[place] = Number(option.value);
        option.disabled = !this.rowOf.has(other.join());
      }
      select.value = key[place];
    });
  }

  codes() {
    const width = words ? words.names.length : 0;
    return this.asked.subarray(this.row * width, (this.row + 1) * width);
  }

  // Pictures with the same number come from the same noise: whichever is looked at, its twins are marked.
  twins(figure, n) {
    const mark = (on) => () => this.sources.forEach((source) => source.figures[n]?.classList.toggle("twin", on));
    for (const event of ["pointerenter", "focusin"]) figure.addEventListener(event, mark(true));
    for (const event of ["pointerleave", "focusout"]) figure.addEventListener(event, mark(false));
  }

  choose(row, address = true) {
    this.row = row;
    this.sets.forEach((selects) => this.refresh(selects));
    this.sources.forEach((source) => source.show(row, this.codes()));
    if (this.start) this.start.value = this.starts.includes(row) ? row : "";
    this.says.textContent = this.words[row];
    this.commands.textContent = this.sources
      .filter((source) => source.place(row) !== undefined)
      .map((source) => {
        const guidance = source.guidance ? ` --guidance ${source.guidance}` : "";
        const given = `--posterior ${source.posterior}${guidance} --given ${quoted(this.words[row])}`;
        return `mmgen sample ${quoted(source.file)} ${given} -n ${data.number} --seed ${data.seed} -o pictures.png`;
      })
      .join("\n");
    this.listeners.forEach((listener) => listener());
    if (address) this.writeAddress();
  }

  // The chosen words as #digit=3&scale=big.
  writeAddress() {
    const chosen = new URLSearchParams();
    this.menus.forEach(({ name, values }, place) => {
      const value = this.keys[this.row][place];
      if (value !== ANY) chosen.set(name, values[value]);
    });
    try {
      history.replaceState(null, "", `#${chosen}`);
    } catch {
      // Some browsers keep the address of a file as it is.
    }
  }

  // The description in the address; undefined where it names no menu, or words that this page does not hold.
  rowOfAddress() {
    const chosen = new URLSearchParams(location.hash.slice(1, 4000));
    if (!this.menus.some(({ name }) => chosen.has(name))) return undefined;
    const usual = this.keys[this.first];
    const key = this.menus.map(({ name, values, any }, place) => {
      const value = chosen.has(name) ? values.indexOf(chosen.get(name)) : any ? ANY : usual[place];
      return value >= 0 || !chosen.has(name) ? value : usual[place];
    });
    return this.rowOf.get(key.join());
  }

  build(container) {
    const menus = make("div", { class: "menus", role: "group", "aria-label": "Words" });
    if (this.starts.length) {
      this.start = make("select");
      this.start.append(new Option("–", ""));
      this.starts.forEach((row) => this.start.append(new Option(this.words[row], row)));
      this.start.addEventListener("change", () => this.start.value && this.choose(Number(this.start.value)));
      menus.append(make("label", {}, "begin with", this.start));
    }
    this.menusInto(menus);
    menus.append(makeButton("At random", () => this.choose(Math.floor(Math.random() * this.keys.length))));
    const none = this.rowOf.get(this.menus.map(() => ANY).join());
    if (none !== undefined) menus.append(makeButton("Anything", () => this.choose(none)));
    this.says = make("p", { class: "says", "aria-live": "polite" });
    this.commands = make("code");
    this.commands.style.whiteSpace = "pre-wrap";
    container.append(menus);
    const sources = make("div", { class: "sources" });
    container.append(this.says, sources);
    this.sources.forEach((source) => source.build(sources, this));
    container.append(make("details", {}, make("summary", {}, "Draw these yourself"), this.commands));
    if (this.selection) container.append(make("p", { class: "muted small" }, this.selection));
    this.choose(this.rowOfAddress() ?? this.first, false);
  }
}

const parts = data.parts.map((described, place) => new Part(described, place));
byId("remark").textContent = data.remark;
if (live && data.traversals) {
  byId("hint").textContent =
    "Pictures below each other come from the same noise: point at one, and its twins light up. Press one to take it to the sliders.";
}
for (const part of parts) {
  const box = make("div", { class: "part" });
  byId("parts").append(box);
  part.build(box);
}
addEventListener("hashchange", () => {
  for (const part of parts) {
    const row = part.rowOfAddress();
    if (row !== undefined && row !== part.row) part.choose(row, false);
  }
});
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
    source.show(0, null);
  }
}

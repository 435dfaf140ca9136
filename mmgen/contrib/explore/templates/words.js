// ---------------------------------------------------------------- pictures for words

const MOST_NAMED = 4; // words that were left open, under a picture
const COUNTED = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const quoted = (text) => `'${text.replaceAll("'", `'"'"'`)}'`;

class Source {
  constructor(described, number) {
    Object.assign(this, described);
    this.number = number;
    this.draws = described.flow === null ? null : live.flows[described.flow];
    this.pictures = picturesOf(described.pictures);
    this.size = pictureSize ?? this.pictures?.size;
    this.judged = bytes(described.judged);
    this.clouds = bytes(described.clouds);
  }

  build(container, part) {
    this.part = part;
    this.line = make("p", { class: "muted small" });
    this.figures = [];
    const row = make("div", { class: "pictures" });
    row.style.setProperty("--count", Math.max(4, Math.min(8, this.number)));
    for (let n = 0; (this.draws || this.pictures) && n < this.number; n++) {
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
    const canvas = canvasFor(this);
    if (!live || !data.traversals) return canvas;
    canvas.removeAttribute("role");
    const button = makeButton(canvas, () => takeToSliders(this.latents[n]), {
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

  // z of noise under a whole description, attribute codes.
  latent(noise, codes) {
    return this.draws.draw(noise, describe(codes), this.steered);
  }

  // New pictures for the wish of the part; without a part, the stored ones of no description.
  show() {
    const { part } = this;
    this.latents = [];
    this.marks = [];
    this.line.textContent = this.verdict;
    this.figures.forEach((figure, n) => {
      const canvas = figure.querySelector("canvas");
      forget(figure);
      if (this.draws) {
        const whole = part.complete(n);
        this.say(figure, n, whole, null);
        canvas.dataset.ready = "";
        later(figure, () => {
          const z = this.latent(part.noise(n), part.codes(whole));
          this.latents[n] = z;
          morph(canvas, z, String(n), () => later(figure, () => this.judge(figure, n, whole)));
        });
        return;
      }
      const row = part ? part.storedRow(n) : 0;
      const number = row * this.number + n;
      this.pictures.draw(canvas, number);
      if (live) this.latents[n] = this.pictures.latent(number);
      const width = words ? words.names.length : 0;
      const seen = this.judged && this.judged.subarray(number * width, (number + 1) * width);
      this.say(figure, n, part ? [...part.descriptions.row(row)] : null, seen);
    });
  }

  judge(figure, n, whole) {
    if (!live.judge) return;
    const seen = judgePicture(this.latents[n], randomStream(data.seed, "pixels", this.part.draw, n));
    this.say(figure, n, whole, seen);
  }

  // What stands under a picture of a whole description: what the judge reads, and the words that were left open.
  say(figure, n, whole, seen) {
    const { part } = this;
    const caption = figure.querySelector("figcaption");
    const canvas = figure.querySelector("canvas");
    const label = [`picture ${n + 1} of ${this.name}`];
    const asked = part ? part.codes(part.wish.chosen) : null;
    const drawn = part && whole ? part.leftOpen(whole) : [];
    const said = [];
    let wrong = false;
    if (seen) {
      const compared = asked ? [...asked.keys()].filter((a) => asked[a] !== UNKNOWN) : [];
      const differ = compared.filter((a) => asked[a] !== seen[a]);
      const own = compared.filter((a) => !told.includes(a));
      wrong = differ.length > 0;
      this.marks[n] = [own.filter((a) => asked[a] === seen[a]).length, own.length];
      if (wrong) said.push("✗ ", ...unbroken(differ.map((a) => valueOf(a, seen[a]))));
      else if (compared.length) said.push("✓");
      label.push(`judge reads ${reading(seen)}`);
      if (compared.length) label.push(wrong ? "not as asked" : "as asked");
    }
    if (drawn.length) label.push(`drawn as ${drawn.join(", ")}`);
    if (!wrong && drawn.length && drawn.length <= MOST_NAMED) said.push(" ", ...unbroken(drawn));
    caption.replaceChildren(...said);
    figure.classList.toggle("wrong", wrong);
    (canvas.closest("button") ?? canvas).setAttribute("aria-label", label.join(": "));
    const [right, wanted] = this.marks.reduce(([r, w], [one, two]) => [r + one, w + two], [0, 0]);
    this.line.textContent = [wanted ? `Here ${right} of ${wanted} words right` : "", this.verdict].filter(Boolean).join("; ");
  }

  // Places on the map of draws for the wish, as contours() takes them; `renew` is called again when there are more.
  cloud(renew) {
    const { part } = this;
    if (!this.draws) {
      const size = this.clouds.length / part.held;
      return renew(part.storedMixture.flatMap((share, row) =>
        share ? fromBytes(this.clouds.subarray(row * size, (row + 1) * size)).map(([x, y]) => [x, y, share, row]) : [],
      ));
    }
    const points = [];
    const more = (n) => {
      const row = pick(part.mixture, randomStream(data.seed, "words of the map", n)());
      const codes = part.codes(part.descriptions.complete(part.wish, row));
      points.push([...placeOnMap(this.latent(part.noise(n, "map", 0), codes)), 1, row]);
      if (n + 1 < CLOUD) later(this, () => more(n + 1));
      if ([CLOUD / 4, CLOUD].includes(n + 1)) renew(points);
    };
    forget(this);
    later(this, () => more(0));
  }
}
const CLOUD = 160; // draws of a cloud

// Places on the map that are written in bytes.
function fromBytes(levels) {
  const at = (byte) => ((2 * byte) / 255 - 1) * data.map.around;
  return Array.from({ length: levels.length / 2 }, (_, n) => [at(levels[2 * n]), at(levels[2 * n + 1])]);
}

// Where the model reads the opening words off z, where no posterior on the page is fitted to it.
class Belief {
  constructor(places, part) {
    Object.assign(this, { plain: "what the model believes", name: "p(z|y)", kind: "true", part });
    this.clouds = bytes(places);
  }

  cloud(renew) {
    if (this.part.isOpening()) renew(fromBytes(this.clouds).map(([x, y]) => [x, y, 1, 0]));
  }
}

// Descriptions of one kind: words that can be chosen or excluded, and the posteriors that answer.
class Part {
  constructor(described, place) {
    Object.assign(this, described);
    this.id = place;
    this.descriptions = new Descriptions(described.rows, described.counts, described.odds, described.menus.map(({ values }) => values.length));
    this.draw = 0;
    this.wish = { ...this.emptyWish(), chosen: [...described.opening] };
    this.listeners = [];
    this.sources = described.sources.map((source) => new Source(source, data.number));
    this.belief = described.belief && new Belief(described.belief, this);
  }

  emptyWish() {
    return { chosen: this.menus.map(() => ANY), excluded: this.menus.map(() => new Set()) };
  }

  // The words with which the page opens.
  open() {
    this.wish = { ...this.emptyWish(), chosen: [...this.opening] };
    this.choose();
  }

  isOpening() {
    return this.wish.chosen.every((value, m) => value === this.opening[m]) && !this.wish.excluded.some((set) => set.size);
  }

  // Shares of the first descriptions in the mixture that the wish asks for.
  shares(count, nearest) {
    return this.descriptions.shares(this.wish, count, nearest);
  }

  // The noise of picture `n` of the present draw.
  noise(n, purpose = "picture", draw = this.draw) {
    return gaussian(randomStream(data.seed, purpose, draw, n), live.flows[0].shift.length);
  }

  // A number from 0 to 1 that decides the words of picture `n` that are left open; those of all pictures are spread.
  uniform(n) {
    const places = Array.from({ length: data.number }, (_, place) => [randomStream(data.seed, "order", this.draw, place)(), place]);
    const order = places.sort(([one], [other]) => one - other).findIndex(([, place]) => place === n);
    return (order + randomStream(data.seed, "words", this.draw, n)()) / data.number;
  }

  // A whole description, a value for each menu, for picture `n` of a flow.
  complete(n) {
    return this.descriptions.complete(this.wish, pick(this.mixture, this.uniform(n)));
  }

  // The stored description of which picture `n` is shown.
  storedRow(n) {
    return pick(this.storedMixture, this.uniform(n));
  }

  // Attribute codes of a value for each menu.
  codes(values) {
    const codes = new Uint8Array(words ? words.names.length : 0).fill(UNKNOWN);
    this.menus.forEach(({ attribute }, m) => attribute >= 0 && values[m] !== ANY && (codes[attribute] = values[m]));
    return codes;
  }

  // A value of a menu in words.
  word(m, value) {
    const { attribute, values } = this.menus[m];
    return attribute >= 0 ? valueOf(attribute, value) : values[value];
  }

  // The words of a whole description that the wish leaves open.
  leftOpen(whole) {
    return whole.flatMap((value, m) => (this.wish.chosen[m] !== ANY || value === ANY ? [] : [this.word(m, value)]));
  }

  // Pictures with the same number come from the same noise: whichever is looked at, its twins are marked.
  twins(figure, n) {
    const mark = (on) => () => this.sources.forEach((source) => source.figures[n]?.classList.toggle("twin", on));
    for (const event of ["pointerenter", "focusin"]) figure.addEventListener(event, mark(true));
    for (const event of ["pointerleave", "focusout"]) figure.addEventListener(event, mark(false));
  }

  inWords() {
    const said = this.wish.chosen.flatMap((value, m) => [
      ...(value === ANY ? [] : [this.word(m, value)]),
      ...[...this.wish.excluded[m]].map((other) => `not ${this.word(m, other)}`),
    ]);
    return said.join(", ") || "anything";
  }

  // The wish as mmgen sample reads it.
  typed() {
    const { chosen, excluded } = this.wish;
    if (this.captions && chosen.every((value) => value !== ANY)) {
      const row = Array.from({ length: this.descriptions.length }, (_, n) => n).find((n) => this.descriptions.row(n).every((value, m) => value === chosen[m]));
      if (row !== undefined) return this.captions[row];
    }
    const pair = (m, value) => {
      const word = this.menus[m].values[value];
      return `${this.menus[m].name}=${/^[^\s,;'"\\()]+$/.test(word) ? word : quoted(word)}`;
    };
    const pairs = chosen.flatMap((value, m) => [
      ...(value === ANY ? [] : [pair(m, value)]),
      ...[...excluded[m]].map((other) => `NOT ${pair(m, other)}`),
    ]);
    return pairs.join(" ") || "anything";
  }

  // New pictures after a change of the wish or of the noise.
  choose(address = true) {
    this.mixture = this.shares(this.descriptions.trained || this.descriptions.length);
    this.storedMixture = this.held ? this.shares(this.held, true) : [];
    this.chips.forEach((refresh) => refresh());
    this.sources.forEach((source) => source.show());
    this.says.textContent = this.inWords();
    this.explain();
    this.commands.textContent = this.sources
      .map((source) => {
        const guidance = source.guidance ? ` --guidance ${source.guidance}` : "";
        const given = `--posterior ${source.posterior}${guidance} --given ${quoted(this.typed())}`;
        return `mmgen sample ${quoted(source.file)} ${given} -n ${data.number} -o pictures.png`;
      })
      .join("\n");
    this.listeners.forEach((listener) => listener());
    if (address) this.writeAddress();
  }

  // How the pictures are drawn: by one whole description or by a mixture of several.
  explain() {
    const whole = this.wish.chosen.every((value) => value !== ANY);
    const several = this.mixture.filter((share) => share).length;
    const seen = this.descriptions.has(this.wish);
    const from = `${several.toLocaleString("en")} whole description${several === 1 ? "" : "s"} of the training pictures`;
    if (whole) this.mixed.textContent = seen ? "" : "No training picture has these words together.";
    else if (!this.descriptions.trained) this.mixed.textContent = "";
    else if (seen) this.mixed.textContent = `A mixture of ${from}, by their shares.`;
    else this.mixed.textContent = "No training picture has these words together; others lend it those that are open.";
  }

  // The wish as #digit=3&NOT+scale=big, and the number of the draw.
  writeAddress() {
    const parameters = new URLSearchParams();
    this.menus.forEach(({ name, values }, m) => {
      if (this.wish.chosen[m] !== ANY) parameters.append(name, values[this.wish.chosen[m]]);
      for (const other of this.wish.excluded[m]) parameters.append(`NOT ${name}`, values[other]);
    });
    if (this.draw) parameters.append(".draw", this.draw);
    this.between?.write(parameters);
    try {
      history.replaceState(null, "", `#${parameters}`);
    } catch {
      // Some browsers keep the address of a file as it is.
    }
  }

  // Takes the wish from the address; returns whether it names a menu of this part.
  readAddress() {
    const parameters = new URLSearchParams(location.hash.slice(1, 4000));
    if (!this.menus.some(({ name }) => parameters.has(name) || parameters.has(`NOT ${name}`))) return false;
    this.wish = this.emptyWish();
    this.menus.forEach(({ name, values }, m) => {
      this.wish.chosen[m] = parameters.has(name) ? values.indexOf(parameters.get(name)) : ANY;
      const others = parameters.getAll(`NOT ${name}`).map((word) => values.indexOf(word));
      others.filter((value) => value !== ANY && value !== this.wish.chosen[m]).slice(0, values.length - 1).forEach((value) => this.wish.excluded[m].add(value));
    });
    this.draw = Math.max(0, Math.trunc(Number(parameters.get(".draw"))) || 0);
    this.between?.read(parameters);
    return true;
  }

  // One press chooses a word, the next excludes it, the third leaves it open; at least one value of a menu remains.
  press(m, value) {
    const { chosen, excluded } = this.wish;
    if (chosen[m] === value) {
      chosen[m] = ANY;
      if (excluded[m].size + 1 < this.menus[m].values.length) excluded[m].add(value);
    } else if (!excluded[m].delete(value)) {
      chosen[m] = value;
    }
    this.choose();
  }

  buildWords(container) {
    this.chips = this.menus.flatMap(({ name, values }, m) => {
      const box = make("fieldset", { class: "words", "data-menu": name }, make("legend", {}, name));
      container.append(box);
      return values.map((word, value) => {
        const not = make("span", { class: "not" }, "not ");
        const button = makeButton(not, () => this.press(m, value), { "aria-pressed": false });
        button.append(make("span", {}, word));
        box.append(button);
        return () => {
          const out = this.wish.excluded[m].has(value);
          not.hidden = !out;
          button.classList.toggle("out", out);
          button.setAttribute("aria-pressed", out || this.wish.chosen[m] === value);
        };
      });
    });
  }

  atRandom() {
    this.wish = this.emptyWish();
    const row = this.descriptions.row(pick(this.shares(this.descriptions.trained || this.descriptions.length), Math.random()));
    const places = [...row.keys()].filter((m) => row[m] !== ANY).sort(() => Math.random() - 0.5);
    places.slice(0, 1 + Math.floor(Math.random() * places.length)).forEach((m) => (this.wish.chosen[m] = row[m]));
    this.choose();
  }

  build(container) {
    const menus = make("div", { class: "choices", role: "group", "aria-label": "Words" });
    this.buildWords(menus);
    this.says = make("p", { class: "says", "aria-live": "polite" });
    this.mixed = make("p", { class: "muted small" });
    this.commands = make("code");
    this.commands.style.whiteSpace = "pre-wrap";
    const buttons = make("div", { class: "buttons" },
      makeButton(`Draw ${COUNTED[data.number] ?? data.number} more`, () => {
        this.draw += 1;
        this.choose();
      }, { class: "main" }),
      makeButton("At random", () => this.atRandom()),
      makeButton("Anything", () => {
        this.wish = this.emptyWish();
        this.choose();
      }),
      ...linkControls(() => this.writeAddress()),
    );
    const how = make("p", { class: "muted small" }, "Press a word to ask for it, again to exclude it, and once more to leave it open.");
    const sources = make("div", { class: "sources" });
    container.append(menus, how, buttons, this.says, this.mixed, sources);
    this.sources.forEach((source) => source.build(sources, this));
    const drawing = this.sources.find((source) => source.draws);
    if (drawing) this.between = new Between(this, drawing, container);
    container.append(make("details", {}, make("summary", {}, "Draw such pictures yourself"), this.commands));
    if (this.selection) container.append(make("p", { class: "muted small" }, this.selection));
    this.readAddress();
    this.choose(false);
  }
}

// A button that copies the address of what is seen, and the address itself where a browser does not let it.
function linkControls(write) {
  const said = make("span", { class: "muted small", "aria-live": "polite" });
  const field = make("input", { readonly: "", "aria-label": "Link to this", hidden: "" });
  const button = makeButton("Link to this", async () => {
    write();
    field.value = location.href;
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Copied.";
    } catch {
      field.hidden = false;
      field.select();
      said.textContent = "Copy it from here.";
    }
  });
  return [button, field, said];
}

const parts = data.parts.map((described, place) => new Part(described, place));
byId("remark").textContent = data.remark;
if (live && data.traversals) {
  byId("hint").textContent =
    "Pictures below each other come from the same noise: point at one, and its twins light up. Press one to take it to the sliders.";
}

// Everything on this page was drawn beforehand; the script finds the picture that belongs to what is chosen. Text out of
// files is only ever set as text.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const ANY = -1;
const UNKNOWN = 255;
const RELAXED = 400; // milliseconds without a move after which a screen reader is told where the pointer is
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const bytes = (text) => (text === null ? null : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));

// Pictures on sheets: a sheet is decoded when the first picture of it is wanted.
class Sheets {
  constructor(described) {
    Object.assign(this, described);
    this.decoded = new Map();
  }

  sheet(number) {
    if (!this.decoded.has(number)) {
      const image = new Image();
      image.src = this.images[number];
      this.decoded.set(number, image.decode().then(() => image));
    }
    return this.decoded.get(number);
  }

  // Draws picture `number` at (x, y) of a canvas, unless something else was asked of it meanwhile.
  async draw(canvas, number, x = 0, y = 0) {
    const [width, height] = this.size;
    const ticket = `${x},${y}`;
    canvas.asked ??= {};
    canvas.asked[ticket] = number;
    canvas.dataset.ready = "";
    const image = await this.sheet(Math.floor(number / this.each));
    if (canvas.asked[ticket] !== number) return;
    const place = number % this.each;
    const left = (place % this.columns) * width;
    const top = Math.floor(place / this.columns) * height;
    canvas.getContext("2d").drawImage(image, left, top, width, height, x, y, width, height);
    canvas.dataset.ready = String(number);
  }
}

function canvasFor(sheets, width = sheets.size[0], attributes = {}) {
  const canvas = make("canvas", { role: "img", ...attributes });
  canvas.width = width;
  canvas.height = sheets.size[1];
  return canvas;
}

// What the judge reads, codes of all attributes, in words.
const words = data.attributes;
const told = data.judge ? data.judge.told : [];
const everyWord = words ? words.values.flat() : [];
// A value in words: with its attribute where others have values of the same name, such as yes and no.
function valueOf(a, code) {
  const word = words.values[a][code];
  return everyWord.indexOf(word) === everyWord.lastIndexOf(word) ? word : `${words.names[a]}=${word}`;
}
// Pictures stand as far apart as the longest word under them is wide, so that none is broken.
if (words) {
  const every = words.values.flatMap((values, a) => values.map((_, code) => valueOf(a, code)));
  const pen = make("canvas").getContext("2d");
  pen.font = "600 100px system-ui, -apple-system, 'Segoe UI', sans-serif";
  const widest = Math.max(...every.flatMap((text) => text.split(/[\s-]+/)).map((word) => pen.measureText(`${word},`).width));
  document.documentElement.style.setProperty("--word", widest / 100); // of the letters' size
}
function reading(codes) {
  return [...codes.keys()].filter((a) => !told.includes(a)).map((a) => valueOf(a, codes[a])).join(", ");
}
const judgeReads = (judged, number) => {
  if (!judged) return "";
  const width = words.names.length;
  return reading(judged.subarray(number * width, (number + 1) * width));
};

// ---------------------------------------------------------------- pictures for words

class Source {
  constructor(described, number) {
    Object.assign(this, described);
    this.number = number;
    this.sheets = described.pictures && new Sheets(described.pictures);
    this.judged = bytes(described.judged);
    this.places = described.rows && new Map(described.rows.map((row, place) => [row, place]));
    this.densities = described.density && new Sheets(described.density);
  }

  // Where the answers to description `row` are; undefined where there are none.
  place(row) {
    return this.places ? this.places.get(row) : row;
  }

  build(container) {
    this.line = make("p", { class: "muted" });
    this.figures = [];
    const pictures = make("div", { class: "pictures" });
    for (let n = 0; this.sheets && n < this.number; n++) {
      const figure = make("figure", {}, canvasFor(this.sheets), make("figcaption"));
      this.figures.push(figure);
      pictures.append(figure);
    }
    const about = this.about ? make("p", { class: "muted" }, this.about) : "";
    const box = make("div", { class: "source", role: "group", "aria-label": this.name });
    box.append(make("h3", {}, this.name), about, pictures, this.line);
    container.append(box);
  }

  // Pictures of description `row`; `asked` are its attribute codes, null where nothing is asked.
  show(row, asked) {
    const place = this.place(row);
    let right = 0;
    let wanted = 0;
    this.figures.forEach((figure, n) => {
      figure.hidden = place === undefined;
      if (place === undefined) return;
      const [canvas, caption] = figure.children;
      const number = place * this.number + n;
      this.sheets.draw(canvas, number);
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
        if (wrong) caption.textContent = `✗ ${differ.map((a) => valueOf(a, seen[a])).join(", ")}`;
        else if (compared.length) caption.textContent = "✓";
        label.push(`judge reads ${reading(seen)}`);
        if (compared.length) label.push(wrong ? "not as asked" : "as asked");
      }
      figure.classList.toggle("wrong", wrong);
      canvas.setAttribute("aria-label", label.join(": "));
    });
    const said = [];
    if (place === undefined) said.push("Guidance needs words to hold to: choose some.");
    if (wanted) said.push(`Here ${right} of ${wanted} words right`);
    if (this.verdict) said.push(this.verdict);
    this.line.textContent = said.join("; ");
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
    this.row = 0;
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

  choose(row) {
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
    const some = make("button", { type: "button" }, "At random");
    some.addEventListener("click", () => this.choose(Math.floor(Math.random() * this.keys.length)));
    menus.append(some);
    const none = this.rowOf.get(this.menus.map(() => ANY).join());
    if (none !== undefined) {
      const clear = make("button", { type: "button" }, "Anything");
      clear.addEventListener("click", () => this.choose(none));
      menus.append(clear);
    }
    this.says = make("p", { class: "says", "aria-live": "polite" });
    this.commands = make("code");
    this.commands.style.whiteSpace = "pre-wrap";
    container.append(menus);
    if (this.selection) container.append(make("p", { class: "muted small" }, this.selection));
    const sources = make("div", { class: "sources" });
    container.append(this.says, sources);
    this.sources.forEach((source) => source.build(sources));
    container.append(make("details", {}, make("summary", {}, "Draw these yourself"), this.commands));
    // The first description that says as much as any does.
    const said = this.keys.map((key) => key.filter((value) => value !== ANY).length);
    this.choose(said.indexOf(Math.max(...said)));
  }
}

const parts = data.parts.map((described, place) => new Part(described, place));
byId("remark").textContent = data.remark;
for (const part of parts) {
  const box = make("div", { class: "part" });
  byId("parts").append(box);
  part.build(box);
}
if (!parts.length) {
  const hint = "Nothing here reads words: fit something to descriptions with mmgen fit-aggregate, and name its file as well.";
  byId("parts").append(make("p", { class: "notice" }, hint));
}
if (data.references.length) {
  const sources = make("div", { class: "sources" });
  byId("references").append(make("p", { class: "muted" }, "For comparison, drawn with nothing given:"), sources);
  for (const described of data.references) {
    const source = new Source(described, data.number);
    source.build(sources);
    source.show(0, null);
  }
}

// ---------------------------------------------------------------- one dimension at a time

if (data.traversals) {
  const found = data.traversals;
  const { values, dimensions } = found; // of each dimension its own values
  const steps = values[0].length;
  const [measure, unit = ""] = found.measure.split(" in ");
  const sheets = new Sheets(found.pictures);
  const originals = new Sheets(found.originals);
  const judged = bytes(found.judged);
  const each = 1 + dimensions.length * steps;
  // Frames of a strip, and a little of the page between them.
  const [frame] = sheets.size;
  const pitch = frame + Math.max(1, Math.round(frame / 24));
  const whole = steps * pitch - (pitch - frame);
  byId("rows").style.setProperty("--frame", `${(100 * frame) / whole}%`);
  let example = 0;
  byId("dimensions").hidden = false;
  const count = dimensions.length < found.of ? `the ${dimensions.length} of ${found.of} dimensions with most to say` : `all ${found.of} dimensions`;
  byId("dimensions-about").textContent =
    `Each row moves one dimension of z ${found.reach} and leaves the others where the picture has ` +
    `them${found.held ? ` (${found.held}: the likeliest)` : ""}: ${count}, ordered by ${measure}. ` +
    "Moving a slider puts the others back.";
  const stage = {};
  for (const [id, of] of [["original", originals], ["rebuilt", sheets], ["moved", sheets]]) {
    stage[id] = byId(id);
    [stage[id].width, stage[id].height] = of.size;
  }

  const number = (place, step) => example * each + 1 + place * steps + step;
  const nearest = (place, mean) => {
    const distances = values[place].map((value) => Math.abs(value - mean));
    return distances.indexOf(Math.min(...distances));
  };
  const says = (place, step) => {
    const read = judgeReads(judged, number(place, step));
    return `${dimensions[place].name} = ${values[place][step]}${read ? `; judge: ${read}` : ""}`;
  };

  const rows = dimensions.map((dimension, place) => {
    const slider = make("input", { type: "range", min: 0, max: steps - 1, step: 1, id: `z${dimension.number}` });
    const name = make("span", {}, dimension.name);
    const label = make("label", { for: slider.id }, name, make("span", { class: "muted" }, `${measure} ${dimension.value} ${unit}`));
    const strip = canvasFor(sheets, whole, { "aria-label": "" });
    const mark = make("div", { class: "mark" });
    const box = make("div", { class: "strip" }, strip, mark);
    slider.addEventListener("input", () => move(place, Number(slider.value)));
    box.addEventListener("click", (event) => {
      const area = strip.getBoundingClientRect();
      const step = Math.floor(((event.clientX - area.left) / area.width) * (whole / pitch));
      move(place, Math.min(steps - 1, Math.max(0, step)));
    });
    byId("rows").append(make("div", { class: "row" }, label, slider, box));
    return { slider, strip, mark };
  });

  const put = (place, step) => {
    const { slider, mark } = rows[place];
    slider.value = step;
    slider.setAttribute("aria-valuetext", says(place, step));
    mark.style.left = `${(100 * step * pitch) / whole}%`;
  };

  const move = (place, step) => {
    rows.forEach((row, other) => put(other, other === place ? step : nearest(other, found.means[example][other])));
    sheets.draw(stage.moved, number(place, step));
    byId("moved-says").textContent = says(place, step);
    stage.moved.setAttribute("aria-label", `decoded with ${says(place, step)}`);
  };

  const start = (chosen) => {
    example = chosen;
    [...byId("examples").children].forEach((button, place) => button.setAttribute("aria-pressed", place === chosen));
    originals.draw(stage.original, chosen);
    stage.original.setAttribute("aria-label", `test picture ${found.rows[chosen]}`);
    sheets.draw(stage.rebuilt, chosen * each);
    const read = judgeReads(judged, chosen * each);
    byId("rebuilt-says").textContent = `decoded from its z${read ? `; judge: ${read}` : ""}`;
    stage.rebuilt.setAttribute("aria-label", byId("rebuilt-says").textContent);
    rows.forEach((row, place) => {
      values[place].forEach((value, step) => sheets.draw(row.strip, number(place, step), step * pitch));
      row.strip.setAttribute("aria-label", `z${dimensions[place].number} from ${values[place][0]} to ${values[place].at(-1)}`);
    });
    move(0, nearest(0, found.means[chosen][0]));
  };

  found.rows.forEach((row, place) => {
    const canvas = canvasFor(originals);
    canvas.removeAttribute("role");
    originals.draw(canvas, place);
    const button = make("button", { type: "button", "aria-label": `test picture ${row}`, "aria-pressed": false }, canvas);
    button.addEventListener("click", () => start(place));
    byId("examples").append(button);
  });
  start(0);
}

// ---------------------------------------------------------------- map

if (data.map) {
  const found = data.map;
  const chart = byId("chart");
  const sheets = found.pictures && new Sheets(found.pictures);
  const judged = bytes(found.judged);
  const beside = found.neighbours && { ...found.neighbours, judged: bytes(found.neighbours.judged) };
  const others = beside && new Sheets(beside.pictures);
  const codes = bytes(found.codes);
  const points = found.points;
  const whole = 1000; // what coordinates of points count to
  const cell = { column: 0, row: 0 };
  let colour = -1; // attribute that points are coloured by
  let alone = -1; // its value that is shown alone
  let cloud = null; // the density as a small canvas of alphas
  let nearest = -1; // point whose picture is shown
  let waiting = 0;

  byId("map").hidden = false;
  const shares = found.exact ? "" : `, in the plane of the first two principal components, ${found.shares.join("\u00a0% and ")}\u00a0% of their variance`;
  byId("map-about").textContent =
    `Each dot is a test picture at the mean of q(z|x)${shares}. ` +
    (others ? "Beside it: what is decoded from the encoding nearest to the pointer (ringed), and at the pointer itself, " +
      "a place of the plane, around which there may be no pictures." : sheets ? "Beside it: what is decoded at the pointer." : "");
  byId("axes").textContent = `Across: ${found.axes[0]}; up: ${found.axes[1]}; ${-found.reach} to ${found.reach}.`;
  byId("under-figure").hidden = !sheets;
  byId("near-figure").hidden = !others;
  if (others) [byId("near").width, byId("near").height] = others.size;
  if (sheets) [byId("under").width, byId("under").height] = sheets.size;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

  const draw = () => {
    const side = Math.round(chart.clientWidth * (window.devicePixelRatio || 1));
    if (!side) return;
    if (chart.width !== side) chart.width = chart.height = side;
    const pen = chart.getContext("2d");
    pen.clearRect(0, 0, side, side);
    if (cloud) {
      pen.imageSmoothingEnabled = false;
      pen.drawImage(cloud, 0, 0, side, side);
    }
    const radius = Math.max(2, side / 220);
    pen.lineWidth = Math.max(0.5, radius / 5);
    const width = words ? words.names.length : 0;
    points.forEach(([x, y], n) => {
      const value = colour >= 0 ? codes[n * width + colour] : UNKNOWN;
      if (alone >= 0 && value !== alone) return;
      const known = colour >= 0 && value !== UNKNOWN;
      pen.fillStyle = known ? found.colours[colour][value] : "#5f6368";
      pen.strokeStyle = known ? found.rims[colour][value] : "#ffffff";
      pen.beginPath();
      pen.arc((x / whole) * side, (1 - y / whole) * side, radius, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    });
    // Names of values at the middle of their points, so that colour is not alone.
    if (colour >= 0) {
      pen.font = `600 ${Math.max(13, side / 38)}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      words.values[colour].forEach((word, value) => {
        const own = points.filter((_, n) => codes[n * width + colour] === value);
        if (!own.length || (alone >= 0 && value !== alone)) return;
        const middle = (axis) => own.map((point) => point[axis]).sort((a, b) => a - b)[Math.floor(own.length / 2)];
        pen.lineWidth = side / 120;
        pen.strokeStyle = "#ffffff";
        pen.strokeText(word, (middle(0) / whole) * side, (1 - middle(1) / whole) * side);
        pen.fillStyle = "#1a1a1a";
        pen.fillText(word, (middle(0) / whole) * side, (1 - middle(1) / whole) * side);
      });
    }
    if (nearest >= 0) {
      for (const [shade, thick] of [["#ffffff", 5], ["#000000", 2]]) {
        pen.strokeStyle = shade;
        pen.lineWidth = (thick * side) / 500;
        pen.beginPath();
        pen.arc((points[nearest][0] / whole) * side, (1 - points[nearest][1] / whole) * side, 2.5 * radius, 0, 2 * Math.PI);
        pen.stroke();
      }
    }
    // The pointer: a cross over the whole map and a ring, white below black, so that it shows on any ground.
    const x = ((cell.column + 0.5) / found.cells) * side;
    const y = (1 - (cell.row + 0.5) / found.cells) * side;
    for (const [shade, thick] of [["#ffffff", 3], ["#000000", 1]]) {
      pen.strokeStyle = shade;
      pen.lineWidth = (thick * side) / 500;
      pen.beginPath();
      pen.moveTo(x, 0); pen.lineTo(x, side); pen.moveTo(0, y); pen.lineTo(side, y);
      pen.moveTo(x + side / 50, y); pen.arc(x, y, side / 50, 0, 2 * Math.PI);
      pen.stroke();
    }
  };

  const point = (column, row) => {
    cell.column = Math.min(found.cells - 1, Math.max(0, column));
    cell.row = Math.min(found.cells - 1, Math.max(0, row));
    const at = (place) => (((place + 0.5) / found.cells) * 2 - 1) * found.reach;
    const where = `${at(cell.column).toFixed(2)}, ${at(cell.row).toFixed(2)}`;
    const number = cell.row * found.cells + cell.column;
    const read = judgeReads(judged, number);
    let said = `at ${where}${read ? `; judge: ${read}` : ""}`;
    byId("under-says").textContent = said;
    if (others) said = `${showNearest()}; ${said}`;
    chart.setAttribute("aria-label", `Map of encodings, pointer ${said}`);
    if (sheets) {
      sheets.draw(byId("under"), number);
      byId("under").setAttribute("aria-label", `decoded ${said}`);
    }
    clearTimeout(waiting);
    waiting = setTimeout(() => (byId("under-live").textContent = said), RELAXED);
    draw();
  };

  // The picture of the encoding that is nearest to the pointer, among those that are shown.
  const showNearest = () => {
    const at = [((cell.column + 0.5) / found.cells) * whole, ((cell.row + 0.5) / found.cells) * whole];
    const width = words ? words.names.length : 0;
    let best = -1;
    let least = Infinity;
    beside.points.forEach((n, place) => {
      if (alone >= 0 && codes[n * width + colour] !== alone) return;
      const distance = (points[n][0] - at[0]) ** 2 + (points[n][1] - at[1]) ** 2;
      if (distance < least) [least, best] = [distance, place];
    });
    if (best < 0) return "";
    nearest = beside.points[best];
    others.draw(byId("near"), best);
    const own = codes ? [...codes.subarray(nearest * width, (nearest + 1) * width)] : [];
    const is = own.flatMap((code, a) => (code === UNKNOWN ? [] : [valueOf(a, code)])).join(", ");
    const read = judgeReads(beside.judged, best);
    const said = `nearest${is ? `: ${is}` : ""}${read ? `; judge, of what is decoded: ${read}` : ""}`;
    byId("near-says").textContent = said;
    byId("near").setAttribute("aria-label", `decoded from the ${said}`);
    return said;
  };

  const follow = (event) => {
    const area = chart.getBoundingClientRect();
    const part = (value, start, size) => Math.floor(((value - start) / size) * found.cells);
    point(part(event.clientX, area.left, area.width), found.cells - 1 - part(event.clientY, area.top, area.height));
  };
  chart.addEventListener("pointerdown", follow);
  chart.addEventListener("pointermove", follow);
  chart.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 5 : 1;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    const middle = Math.floor(found.cells / 2);
    if (event.key === "Home") point(middle, middle);
    else if (moves[event.key]) point(cell.column + moves[event.key][0], cell.row + moves[event.key][1]);
    else return;
    event.preventDefault();
  });

  // Colours
  const menu = byId("colour");
  menu.append(new Option("none", -1));
  if (codes) words.names.forEach((name, a) => menu.append(new Option(`by ${name}`, a)));
  const paint = (attribute) => {
    colour = attribute;
    alone = -1;
    byId("legend").replaceChildren();
    if (colour >= 0) {
      words.values[colour].forEach((word, value) => {
        const dot = make("i");
        dot.style.background = found.colours[colour][value];
        const button = make("button", { type: "button", "aria-pressed": false }, dot, word);
        button.addEventListener("click", () => {
          alone = alone === value ? -1 : value;
          [...byId("legend").children].forEach((other, n) => other.setAttribute("aria-pressed", n === alone));
          point(cell.column, cell.row);
        });
        byId("legend").append(button);
      });
    }
    draw();
  };
  menu.addEventListener("change", () => paint(Number(menu.value)));
  menu.value = codes && words.names.length ? 0 : -1;

  // Density of a description
  const chooser = byId("density");
  chooser.append(new Option("none", ""));
  const drawn = parts.flatMap((part) => part.sources.filter((source) => source.densities).map((source) => ({ part, source })));
  drawn.forEach(({ source }, place) => chooser.append(new Option(source.name, place)));
  byId("density-label").hidden = !drawn.length;
  const small = make("canvas");
  small.width = small.height = found.densityCells;
  const fine = 8 * found.densityCells;

  // The cells, drawn smoothly, with two shades: inside the smallest regions of 50 % and of 90 %.
  const shade = async () => {
    const chosen = drawn[Number(chooser.value)];
    const asked = chooser.value;
    const place = chosen && asked !== "" ? chosen.source.place(chosen.part.row) : undefined;
    chart.dataset.density = "";
    const outside = place === undefined ? 0 : chosen.source.outside[place];
    const beside = outside === 100 ? " All of it lies outside the map." : outside ? ` ${outside} % of it lie outside the map.` : "";
    byId("density-about").textContent = chosen && asked !== "" ? found.density + beside : "";
    if (place === undefined) {
      cloud = null;
      return draw();
    }
    await chosen.source.densities.draw(small, place);
    if (chooser.value !== asked || chosen.source.place(chosen.part.row) !== place) return;
    const large = make("canvas");
    large.width = large.height = fine;
    const pen = large.getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingQuality = "high";
    pen.translate(0, fine);
    pen.scale(1, -1); // row 0 is the bottom
    pen.drawImage(small, 0, 0, fine, fine);
    const pixels = pen.getImageData(0, 0, fine, fine);
    for (let n = 0; n < pixels.data.length; n += 4) {
      const inside = pixels.data[n] / 255;
      pixels.data.set([230, 159, 0, inside > 0.5 ? 190 : inside > 0.1 ? 95 : 0], n);
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.putImageData(pixels, 0, 0);
    cloud = large;
    chart.dataset.density = String(place);
    draw();
  };
  const boxes = parts.map((part) => {
    const box = make("div", { class: "menus", role: "group", "aria-label": "Words of the density" });
    box.hidden = true;
    part.menusInto(box);
    part.refresh(part.sets.at(-1));
    part.listeners.push(shade);
    byId("density-menus").append(box);
    return box;
  });
  chooser.addEventListener("change", () => {
    const chosen = chooser.value === "" ? null : drawn[Number(chooser.value)].part;
    boxes.forEach((box, place) => (box.hidden = parts[place] !== chosen));
    shade();
  });

  paint(Number(menu.value));
  const [x, y] = points[0].map((place) => Math.floor((place / whole) * found.cells));
  point(x, y);
  new ResizeObserver(draw).observe(chart);
}

// ---------------------------------------------------------------- map

let pointOnMap = () => {}; // moves the pointer to z
let chooseDensity = () => {}; // shows the density of a part's posterior
let placeOnMap = () => [0, 0]; // of z, from -1 to 1 along each side
const CELLS = 31; // of a density along each side of the map; it is drawn smoothly

const FEWEST = 12; // degrees of freedom for a width of kernels within descriptions

// Variance of weighted values about their mean, or about the means of their groups where these are large enough.
function spread(values, weights, groups) {
  const sums = new Map();
  values.forEach((value, n) => {
    const [one, sum] = sums.get(groups[n]) ?? [0, 0];
    sums.set(groups[n], [one + weights[n], sum + weights[n] * value]);
  });
  const free = values.length - sums.size;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const mean = values.reduce((sum, value, n) => sum + (weights[n] / total) * value, 0);
  const within = free >= FEWEST;
  const squares = values.reduce((sum, value, n) => {
    const [one, own] = sums.get(groups[n]);
    return sum + (weights[n] / total) * (value - (within ? own / one : mean)) ** 2;
  }, 0);
  return within && sums.size > 1 ? (squares * values.length) / free : squares;
}

// Of each cell of the map, 1 minus the mass of all denser ones, also beside the map: above 0.5 they hold half of it.
// Points are [x, y, weight, description]; kernels have a third of Scott's width with the effective number of points,
// from their spread within descriptions: his width suits a single Gaussian, and fills the gaps between several clusters.
function contours(points, around = data.map.around) {
  const side = around * CELLS;
  const weights = points.map((point) => point[2]);
  const groups = points.map((point) => point[3]);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const squares = weights.reduce((sum, weight) => sum + (weight / total) ** 2, 0);
  const widths = [0, 1].map((axis) => {
    const variance = spread(points.map((point) => point[axis]), weights, groups);
    return Math.min(side, Math.max(0.6, (Math.sqrt(variance) * squares ** (1 / 6) * CELLS) / 6));
  });
  const density = new Float64Array(side * side);
  for (const [x, y, weight] of points) {
    const [across, up] = [x, y].map((place, axis) => {
      const at = ((place + around) / 2) * CELLS - 0.5;
      const width = widths[axis];
      const low = Math.max(0, Math.ceil(at - 4 * width));
      const values = [];
      for (let n = low; n <= Math.min(side - 1, at + 4 * width); n++) values.push(Math.exp((-0.5 * (n - at) ** 2) / width ** 2) / width);
      return { low, values };
    });
    up.values.forEach((one, row) => across.values.forEach((other, column) => (density[(up.low + row) * side + across.low + column] += weight * one * other)));
  }
  const order = [...density.keys()].sort((one, other) => density[other] - density[one]);
  const mass = density.reduce((sum, value) => sum + value, 0);
  const shares = new Float64Array(side * side);
  let before = 0;
  for (const cell of order) {
    shares[cell] = density[cell] ? 1 - before / mass : 0;
    before += density[cell];
  }
  const first = (side - CELLS) / 2;
  const inside = Array.from({ length: CELLS }, (_, row) => [...shares.subarray((first + row) * side + first, (first + row) * side + first + CELLS)]);
  const outside = points.reduce((sum, [x, y, weight]) => sum + (Math.max(Math.abs(x), Math.abs(y)) > 1 ? weight : 0), 0) / total;
  return { inside, outside };
}
if (data.map) {
  const found = data.map;
  const chart = byId("chart");
  const beside = found.neighbours;
  const others = found.exact ? null : new Latents(beside.pictures);
  const codes = bytes(found.codes);
  const points = found.points;
  const whole = 1000; // what coordinates of points count to
  const at = { x: 0, y: 0 }; // the pointer, in parts of the map from 0 to 1
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
      "a place of the plane, around which there may be no pictures." : "Beside it: what is decoded at the pointer.");
  byId("axes").textContent = `Across: ${found.axes[0]}; up: ${found.axes[1]}; ${-found.reach} to ${found.reach}.`;
  byId("near-figure").hidden = !others;
  if (others) [byId("near").width, byId("near").height] = others.size;
  [byId("under").width, byId("under").height] = pictureSize;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

  // The points, drawn again only where they change: the pointer moves over them.
  const layer = make("canvas");
  const drawPoints = () => {
    const side = Math.round(chart.clientWidth * (window.devicePixelRatio || 1));
    if (!side) return;
    if (chart.width !== side) chart.width = chart.height = side;
    layer.width = layer.height = side;
    const pen = layer.getContext("2d");
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
    if (colour >= 0) drawNames(pen, side, width);
  };

  // Names of values at the middle of their points, so that colour is not alone; none over another.
  const drawNames = (pen, side, width) => {
    const size = Math.max(13, side / 38);
    pen.font = `600 ${size}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const taken = [];
    words.values[colour].forEach((word, value) => {
      const own = points.filter((_, n) => codes[n * width + colour] === value);
      if (!own.length || (alone >= 0 && value !== alone)) return;
      const middle = (axis) => own.map((place) => place[axis]).sort((a, b) => a - b)[Math.floor(own.length / 2)] / whole;
      const half = pen.measureText(word).width / 2;
      const x = Math.min(side - half - 4, Math.max(half + 4, middle(0) * side));
      let y = (1 - middle(1)) * side;
      const hits = () => taken.find((one) => Math.abs(one.x - x) < one.half + half && Math.abs(one.y - y) < size * 1.05);
      for (let other = hits(); other && y < side; other = hits()) y = other.y + size * 1.1;
      taken.push({ x, y, half });
      pen.lineWidth = side / 120;
      pen.strokeStyle = "#ffffff";
      pen.strokeText(word, x, y);
      pen.fillStyle = "#1a1a1a";
      pen.fillText(word, x, y);
    });
  };

  const drawPointer = () => {
    const side = chart.width;
    const pen = chart.getContext("2d");
    pen.clearRect(0, 0, side, side);
    if (layer.width) pen.drawImage(layer, 0, 0);
    const radius = Math.max(2, side / 220);
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
    const [x, y] = [at.x * side, (1 - at.y) * side];
    for (const [shade, thick] of [["#ffffff", 3], ["#000000", 1]]) {
      pen.strokeStyle = shade;
      pen.lineWidth = (thick * side) / 500;
      pen.beginPath();
      pen.moveTo(x, 0); pen.lineTo(x, side); pen.moveTo(0, y); pen.lineTo(side, y);
      pen.moveTo(x + side / 50, y); pen.arc(x, y, side / 50, 0, 2 * Math.PI);
      pen.stroke();
    }
  };
  const draw = () => {
    drawPoints();
    drawPointer();
  };

  // z at the pointer.
  const latent = () => {
    const { centre, axes } = found.plane;
    const [across, up] = [2 * at.x - 1, 2 * at.y - 1];
    return Float32Array.from(centre, (value, d) => value + across * axes[0][d] + (axes[1] ? up * axes[1][d] : 0));
  };

  const point = (x, y) => {
    [at.x, at.y] = [x, y].map((place) => Math.min(1, Math.max(0, place)));
    refresh();
  };

  const say = () => {
    const where = [at.x, at.y].map((place) => ((2 * place - 1) * found.reach).toFixed(2)).join(", ");
    const read = modelReads(latent());
    let said = `at ${where}${read ? `; the model reads: ${read}` : ""}`;
    byId("under-says").textContent = said;
    paint(byId("under"), latent());
    byId("under").dataset.ready = "yes";
    byId("under").setAttribute("aria-label", `decoded ${said}`);
    if (others) said = `${showNearest()}; ${said}`;
    chart.setAttribute("aria-label", `Map of encodings, pointer ${said}`);
    clearTimeout(waiting);
    waiting = setTimeout(() => (byId("under-live").textContent = said), RELAXED);
    drawPointer();
  };
  const refresh = oncePerFrame(say);

  // The picture of the encoding that is nearest to the pointer, among those that are shown.
  const showNearest = () => {
    const width = words ? words.names.length : 0;
    let best = -1;
    let least = Infinity;
    beside.points.forEach((n, place) => {
      if (alone >= 0 && codes[n * width + colour] !== alone) return;
      const distance = (points[n][0] - at.x * whole) ** 2 + (points[n][1] - at.y * whole) ** 2;
      if (distance < least) [least, best] = [distance, place];
    });
    if (best < 0) return "";
    if (nearest === beside.points[best]) return byId("near-says").textContent;
    nearest = beside.points[best];
    paint(byId("near"), others.latent(best));
    const own = codes ? [...codes.subarray(nearest * width, (nearest + 1) * width)] : [];
    const is = own.flatMap((code, a) => (code === UNKNOWN ? [] : [valueOf(a, code)])).join(", ");
    const said = `nearest${is ? `: ${is}` : ""}`;
    byId("near-says").textContent = said;
    byId("near").setAttribute("aria-label", `decoded from the ${said}`);
    return said;
  };

  const follow = (event) => {
    const area = chart.getBoundingClientRect();
    point((event.clientX - area.left) / area.width, 1 - (event.clientY - area.top) / area.height);
  };
  chart.addEventListener("pointerdown", follow);
  chart.addEventListener("pointermove", follow);
  chart.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 0.1 : 0.02;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key === "Home") point(0.5, 0.5);
    else if (moves[event.key]) point(at.x + moves[event.key][0], at.y + moves[event.key][1]);
    else return;
    event.preventDefault();
  });

  // Colours
  const menu = byId("colour");
  menu.append(new Option("none", -1));
  if (codes) words.names.forEach((name, a) => menu.append(new Option(`by ${name}`, a)));
  const colourBy = (attribute) => {
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
          drawPoints();
          refresh();
        });
        byId("legend").append(button);
      });
    }
    draw();
  };
  menu.addEventListener("change", () => colourBy(Number(menu.value)));
  menu.value = codes && words.names.length ? found.colour : -1;

  // Density of the chosen words
  const chooser = byId("density");
  chooser.append(new Option("none", ""));
  const drawn = parts.flatMap((part) =>
    [...part.sources, part.belief].filter((source) => source && (source.draws || source.clouds)).map((source) => ({ part, source })),
  );
  drawn.forEach(({ source }, place) => chooser.append(new Option(`${source.plain} (${source.name})`, place)));
  byId("density-label").hidden = !drawn.length;
  const fine = 8 * CELLS;

  // The cells, drawn smoothly, with two shades: inside the smallest regions of 50 % and of 90 %.
  const paintDensity = (points) => {
    const { inside, outside } = contours(points);
    const small = make("canvas");
    small.width = small.height = CELLS;
    const image = new ImageData(CELLS, CELLS);
    inside.flat().forEach((share, n) => image.data.set([255 * share, 0, 0, 255], 4 * n));
    small.getContext("2d").putImageData(image, 0, 0);
    const large = make("canvas");
    large.width = large.height = fine;
    const pen = large.getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingQuality = "high";
    pen.translate(0, fine);
    pen.scale(1, -1); // row 0 is the bottom
    pen.drawImage(small, 0, 0, fine, fine);
    const pixels = pen.getImageData(0, 0, fine, fine);
    for (let n = 0; n < pixels.data.length; n += 4) {
      const share = pixels.data[n] / 255;
      pixels.data.set([230, 159, 0, share > 0.5 ? 190 : share > 0.1 ? 95 : 0], n);
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.putImageData(pixels, 0, 0);
    cloud = large;
    const share = Math.round(100 * outside);
    const beside = share === 100 ? " All of it lies outside the map." : share ? ` ${share} % of it lie outside the map.` : "";
    byId("density-about").textContent = `“${drawn[Number(chooser.value)].part.inWords()}”. ${found.density}${beside}`;
    chart.dataset.density = "ready";
    draw();
  };
  const shade = () => {
    const chosen = chooser.value === "" ? null : drawn[Number(chooser.value)];
    chart.dataset.density = "";
    byId("density-about").textContent = chosen ? found.density : "";
    drawn.forEach(({ source }) => forget(source));
    if (!chosen || (chosen.source === chosen.part.belief && !chosen.part.isOpening())) {
      if (chosen) byId("density-about").textContent = `Known for “${chosen.part.word(...openingWord(chosen.part))}” alone.`;
      cloud = null;
      return draw();
    }
    chosen.source.cloud((points) => drawn[Number(chooser.value)] === chosen && chooser.value !== "" && paintDensity(points));
  };
  const openingWord = (part) => {
    const m = part.opening.findIndex((value) => value !== ANY);
    return [m, part.opening[m]];
  };
  parts.forEach((part) => part.listeners.push(shade));
  chooser.addEventListener("change", shade);
  chooseDensity = (source) => {
    const place = drawn.findIndex((one) => one.source === source);
    chooser.value = place < 0 ? "" : place;
    shade();
  };
  placeOnMap = (z) =>
    [0, 1].map((number) => {
      const axis = found.plane.axes[number];
      if (!axis) return 0;
      const length = axis.reduce((sum, value) => sum + value ** 2, 0);
      return axis.reduce((sum, value, d) => sum + value * (z[d] - found.plane.centre[d]), 0) / length;
    });
  pointOnMap = (z) => point(...placeOnMap(z).map((place) => (place + 1) / 2));
  byId("map-buttons").append(makeButton("Take it to the sliders", () => takeToSliders(latent())));

  colourBy(Number(menu.value));
  // The pointer starts at the test picture that is nearest to the middle of all.
  const distance = ([x, y]) => (x / whole - 0.5) ** 2 + (y / whole - 0.5) ** 2;
  const first = points.reduce((best, place) => (distance(place) < distance(best) ? place : best));
  point(first[0] / whole, first[1] / whole);
  new ResizeObserver(draw).observe(chart);
}

// ---------------------------------------------------------------- dimensions of z

// Shows how a dimension of z is named, what it changes and how much it says.
function dimensionLabel(dimension, slider, measure, unit) {
  const name = make("span", {}, dimension.name, dimension.changes ? `: changes ${dimension.changes}` : "");
  return make("label", { for: slider.id }, name, make("span", { class: "muted" }, `${measure} ${dimension.value} ${unit}`));
}

// A strip of pictures with a little of the page between them.
function stripFor(pictures, steps) {
  const [frame] = pictures.size;
  const pitch = frame + Math.max(1, Math.round(frame / 24));
  const whole = steps * pitch - (pitch - frame);
  byId("rows").style.setProperty("--frame", `${(100 * frame) / whole}%`);
  return { pitch, whole };
}

const stepUnder = (event, strip, { pitch, whole }, steps) => {
  const area = strip.getBoundingClientRect();
  const step = Math.floor(((event.clientX - area.left) / area.width) * (whole / pitch));
  return Math.min(steps - 1, Math.max(0, step));
};

// Buttons of the test pictures to start from.
function exampleButtons(originals, container, start) {
  data.traversals.rows.forEach((row, place) => {
    const canvas = canvasFor(originals);
    canvas.removeAttribute("role");
    originals.draw(canvas, place);
    container.append(makeButton(canvas, () => start(place), { "aria-label": `test picture ${row}`, "aria-pressed": false }));
  });
}

// Pictures that the page decodes itself: all dimensions together. Returns a function that shows any z.
function liveTraversals(found) {
  const { values, dimensions } = found;
  const steps = values[0].length;
  const [measure, unit = ""] = found.measure.split(" in ");
  const originals = new Sheets(found.originals);
  const starts = new Latents(found.z);
  const { pitch, whole } = stripFor(originals, steps);
  let z = starts.latent(0); // what the sliders say
  let origin = z; // where they began
  let waiting = 0;
  let jobs = []; // frames of strips that are to be painted
  for (const id of ["original", "rebuilt", "moved"]) [byId(id).width, byId(id).height] = originals.size;
  byId("dimensions-about").textContent +=
    " Move as many sliders as you like; each strip shows what its dimension would change from here.";

  const valueIn = (from, place) => {
    const { places } = dimensions[place];
    return places.reduce((sum, d) => sum + from[d], 0) / places.length;
  };
  // z with one dimension moved; all places of a channel together.
  const moved = (from, place, value) => {
    const result = from.slice();
    const step = value - valueIn(from, place);
    for (const d of dimensions[place].places) result[d] += step;
    return result;
  };

  const paintStrips = () => {
    const end = performance.now() + FRAME;
    while (jobs.length && performance.now() < end) jobs.shift()();
    if (jobs.length) requestAnimationFrame(paintStrips);
  };
  const renewStrips = () => {
    const idle = !jobs.length;
    const from = z;
    jobs = rows.flatMap(({ strip }, place) =>
      values[place].map((value, step) => () => paint(strip, moved(from, place, value), step * pitch)),
    );
    jobs.push(() => (byId("rows").dataset.ready = "yes"));
    if (idle) requestAnimationFrame(paintStrips);
  };

  const paintMoved = oncePerFrame(() => {
    const canvas = byId("moved");
    morphs.delete(canvas);
    canvas.z = z;
    paint(canvas, z);
    const read = modelReads(z);
    byId("moved-says").textContent = read ? `the model reads: ${read}` : "decoded with the sliders";
    canvas.setAttribute("aria-label", read ? `decoded with the sliders; the model reads ${read}` : "decoded with the sliders");
    canvas.dataset.ready = "yes";
  });
  const put = (place, value) => {
    const { slider, mark } = rows[place];
    const [low, high] = [values[place][0], values[place].at(-1)];
    slider.min = Math.min(low, value); // some pictures lie farther out
    slider.max = Math.max(high, value);
    slider.value = value;
    slider.setAttribute("aria-valuetext", `${dimensions[place].name} = ${value.toFixed(2)}`);
    const part = Math.min(1, Math.max(0, (value - low) / (high - low)));
    mark.style.left = `${(100 * (part * (steps - 1) * pitch + originals.size[0] / 2)) / whole}%`;
  };
  const changed = () => {
    byId("moved").dataset.ready = byId("rows").dataset.ready = "";
    paintMoved();
    clearTimeout(waiting);
    jobs = [];
    waiting = setTimeout(renewStrips, 150);
  };
  const move = (place, value) => {
    z = moved(z, place, value);
    put(place, value);
    changed();
  };
  const show = (latent) => {
    z = latent;
    dimensions.forEach((_, place) => put(place, valueIn(z, place)));
    changed();
  };

  const rows = dimensions.map((dimension, place) => {
    const [low, high] = [values[place][0], values[place].at(-1)];
    const slider = make("input", { type: "range", min: low, max: high, step: "any", id: `z${dimension.number}` });
    const strip = canvasFor(originals, whole, { "aria-label": `${dimension.name} from ${low} to ${high}, from here` });
    const mark = make("div", { class: "mark line" });
    const box = make("div", { class: "strip" }, strip, mark);
    slider.addEventListener("input", () => move(place, Number(slider.value)));
    box.addEventListener("click", (event) => move(place, values[place][stepUnder(event, strip, { pitch, whole }, steps)]));
    byId("rows").append(make("div", { class: "row" }, dimensionLabel(dimension, slider, measure, unit), slider, box));
    return { slider, strip, mark };
  });

  const begin = (latent, shown, label) => {
    origin = latent;
    [...byId("examples").children].forEach((button, place) => button.setAttribute("aria-pressed", place === shown));
    byId("original-figure").hidden = shown === undefined;
    if (shown !== undefined) originals.draw(byId("original"), shown);
    byId("original").setAttribute("aria-label", label);
    paint(byId("rebuilt"), latent);
    const read = modelReads(latent);
    byId("rebuilt-says").textContent = `decoded from its z${read ? `; the model reads: ${read}` : ""}`;
    byId("rebuilt").setAttribute("aria-label", byId("rebuilt-says").textContent);
    show(latent);
  };
  exampleButtons(originals, byId("examples"), (place) => begin(starts.latent(place), place, `test picture ${found.rows[place]}`));
  const gauss = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  byId("dimensions-buttons").append(
    makeButton("Back to the start", () => show(origin)),
    makeButton("At random", () => {
      let drawn = z;
      dimensions.forEach((_, place) => {
        const [low, high] = [values[place][0], values[place].at(-1)];
        drawn = moved(drawn, place, (low + high) / 2 + ((high - low) / 6) * gauss());
      });
      show(drawn);
    }),
  );
  begin(starts.latent(0), 0, `test picture ${found.rows[0]}`);
  return (latent) => begin(latent, undefined, "");
}

let showOnSliders = () => {};
function takeToSliders(latent) {
  showOnSliders(latent);
  byId("dimensions").scrollIntoView({ behavior: still.matches ? "auto" : "smooth" });
}
if (data.traversals) {
  const found = data.traversals;
  const count =
    found.dimensions.length < found.of ? `the ${found.dimensions.length} of ${found.of} dimensions with most to say` : `all ${found.of} dimensions`;
  byId("dimensions").hidden = false;
  byId("dimensions-about").textContent =
    `Each row moves one dimension of z ${found.reach} and leaves the others where the picture has ` +
    `them${found.held ? ` (${found.held}: the likeliest)` : ""}: ${count}, ordered by ${found.measure}.`;
  showOnSliders = liveTraversals(found);
}

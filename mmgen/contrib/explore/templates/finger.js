// ---------------------------------------------------------------- drawing with the finger

if (live && live.encoder && data.traversals) {
  const [width, height] = pictureSize;
  const channels = data.live.ground.length;
  const canvas = byId("paper");
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const colour = (values) => `rgb(${[0, 1, 2].map((c) => values[c % values.length]).join(" ")})`;
  const dark = data.live.ground.reduce((sum, value) => sum + value, 0) < 128 * channels;
  const stored = new Latents(data.map.neighbours.pictures);
  const originals = new Sheets(data.traversals.originals);
  const thick = byId("thick");
  let ink = dark ? "#ffffff" : "#000000";
  let last = null; // the pen's last place while it draws
  let z = null;
  const cross = { x: width / 2, y: height / 2, down: false }; // the pen of the keyboard

  byId("finger").hidden = byId("finger-link").hidden = false;
  for (const id of ["paper", "again"]) [byId(id).width, byId(id).height] = [width, height];
  thick.max = Math.max(2, Math.round(width / 6));
  thick.value = Math.max(1.5, width / 11);

  const near = Array.from({ length: 6 }, () => {
    const figure = make("figure", {}, canvasFor(stored), make("figcaption"));
    byId("nearby").append(figure);
    return figure;
  });

  // Encodes the paper, in black and white for a model of such pictures.
  const read = oncePerFrame(() => {
    const { data: colours } = pen.getImageData(0, 0, width, height);
    const pixels = Float32Array.from({ length: channels * width * height }, (_, n) => {
      const place = 4 * (n % (width * height));
      if (channels > 1) return colours[place + Math.floor(n / (width * height))] / 255;
      const grey = (colours[place] + colours[place + 1] + colours[place + 2]) / 765;
      return data.live.binary ? Math.round(grey) : grey;
    });
    z = live.encoder.run(pixels).slice();
    paint(byId("again"), z);
    const says = modelReads(z);
    byId("again-says").textContent = says ? `the model reads: ${says}` : "as the model draws it";
    byId("again").setAttribute("aria-label", `drawn by the model${says ? `, which reads ${says}` : ""}`);
    canvas.dataset.ready = "yes";
    stored.nearest(z, near.length).forEach((number, place) => {
      const [shown, caption] = near[place].children;
      paint(shown, stored.latent(number));
      const own = bytes(data.map.codes);
      const point = data.map.neighbours.points[number];
      const codes = own ? [...own.subarray(point * words.names.length, (point + 1) * words.names.length)] : [];
      caption.replaceChildren(...unbroken(codes.flatMap((code, a) => (code === UNKNOWN ? [] : [valueOf(a, code)]))));
      shown.setAttribute("aria-label", `neighbour ${place + 1}${caption.textContent ? `: ${caption.textContent}` : ""}`);
    });
  });

  const line = (from, to) => {
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = Number(thick.value);
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x + 0.01, to.y);
    pen.stroke();
    canvas.dataset.ready = "";
    read();
  };
  const clear = () => {
    pen.fillStyle = colour(data.live.ground);
    pen.fillRect(0, 0, width, height);
    canvas.dataset.ready = "";
    read();
  };

  const placeOf = (event) => {
    const area = canvas.getBoundingClientRect();
    return { x: ((event.clientX - area.left) / area.width) * width, y: ((event.clientY - area.top) / area.height) * height };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = placeOf(event);
    line(last, last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) {
      const place = placeOf(each);
      line(last, place);
      last = place;
    }
  });
  for (const event of ["pointerup", "pointercancel"]) canvas.addEventListener(event, () => (last = null));
  canvas.addEventListener("keydown", (event) => {
    const step = width / 32;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (event.key === " ") cross.down = !cross.down;
    else if (!moves) return;
    event.preventDefault();
    const from = { ...cross };
    if (moves) {
      cross.x = Math.min(width, Math.max(0, cross.x + moves[0]));
      cross.y = Math.min(height, Math.max(0, cross.y + moves[1]));
    }
    if (cross.down) line(from, cross);
    byId("pen-says").textContent = `pen ${cross.down ? "down" : "up"}, at ${Math.round(cross.x)}, ${Math.round(cross.y)}`;
  });

  const inks = channels > 1 ? ["#000000", "#ffffff", "#d62728", "#ff7f0e", "#f2d200", "#2ca02c", "#1f77b4", "#9467bd"] : ["#ffffff", "#000000"];
  for (const each of inks) {
    const dot = make("i");
    dot.style.background = each;
    const name = { "#000000": "black", "#ffffff": "white", "#d62728": "red", "#ff7f0e": "orange", "#f2d200": "yellow", "#2ca02c": "green", "#1f77b4": "blue", "#9467bd": "violet" }[each];
    const button = makeButton(dot, () => {
      ink = each;
      [...byId("inks").children].forEach((other) => other.setAttribute("aria-pressed", other === button));
    }, { "aria-pressed": each === ink });
    button.append(name);
    byId("inks").append(button);
  }
  byId("paper-buttons").append(
    makeButton("Clear", clear),
    makeButton("Show it on the map", () => {
      pointOnMap(z);
      byId("map").scrollIntoView({ behavior: still.matches ? "auto" : "smooth" });
    }),
    makeButton("Take it to the sliders", () => takeToSliders(z)),
  );
  const begin = (picture) => {
    pen.drawImage(picture, 0, 0);
    read();
  };
  data.traversals.rows.forEach((row, place) => {
    const small = canvasFor(originals);
    small.removeAttribute("role");
    const painted = originals.draw(small, place);
    if (!place) painted.then(() => begin(small));
    byId("papers").append(makeButton(small, () => begin(small), { "aria-label": `begin with test picture ${row}` }));
  });
  clear();
}

// ---------------------------------------------------------------- pictures: cut from sheets, or decoded from z

// Pictures on sheets: a sheet is decoded when its first picture is drawn.
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

  // Draws picture `number` at (x, y) of a canvas, unless another picture is drawn there meanwhile.
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

// Work that takes long, a little in every frame; new work of an owner takes the place of its old.
const jobs = [];
const FRAME = 12; // milliseconds of work in a frame
const workOn = oncePerFrame(() => {
  const end = performance.now() + FRAME;
  do jobs.shift()?.action();
  while (jobs.length && performance.now() < end);
  if (jobs.length) workOn();
});
function forget(owner) {
  for (let n = jobs.length - 1; n >= 0; n--) if (jobs[n].owner === owner) jobs.splice(n, 1);
}
function later(owner, action) {
  jobs.push({ owner, action });
  workOn();
}

let cost = 4; // milliseconds of one picture, on average

// Decodes z and paints the picture at (x, y) of a canvas.
function paint(canvas, z, x = 0, y = 0) {
  const start = performance.now();
  paintPixels(canvas, live.decoder.run(z), x, y);
  cost += 0.1 * (performance.now() - start - cost);
}
function paintPixels(canvas, pixels, x = 0, y = 0) {
  const [width, height] = pictureSize;
  const area = width * height;
  const channels = pixels.length / area;
  const image = new ImageData(width, height);
  for (let n = 0; n < area; n++) {
    for (let c = 0; c < 3; c++) image.data[4 * n + c] = Math.round(255 * pixels[(c % channels) * area + n]);
    image.data[4 * n + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, x, y);
}

// A canvas turns from its picture into that of another z, while other canvases do so as well; each frame paints as
// many as there is time for.
const morphs = new Map();
const turn = oncePerFrame(() => {
  const now = performance.now();
  const whole = Math.min(1500, Math.max(450, 6 * cost * morphs.size));
  for (const [canvas, one] of [...morphs]) {
    const part = Math.min(1, (now - one.start) / whole);
    morphs.delete(canvas);
    if (part < 1) morphs.set(canvas, one); // behind the others
    canvas.z = part < 1 ? one.from.map((value, d) => value + (one.to[d] - value) * part * part * (3 - 2 * part)) : one.to;
    paint(canvas, canvas.z);
    if (part === 1) {
      canvas.dataset.ready = one.name;
      one.done();
    }
    if (performance.now() - now > FRAME) break;
  }
  if (morphs.size) turn();
});
function morph(canvas, z, name, done = () => {}) {
  canvas.dataset.ready = "";
  if (canvas.z && !still.matches) {
    morphs.set(canvas, { from: canvas.z, to: z, start: performance.now(), name, done });
    return turn();
  }
  morphs.delete(canvas);
  canvas.z = z;
  paint(canvas, z);
  canvas.dataset.ready = name;
  done();
}

// Pictures that the page decodes from their z.
class Latents {
  constructor({ z, scale, width, size }) {
    const levels = new Int16Array(bytes(z).buffer);
    this.size = size;
    this.width = width;
    this.z = Float32Array.from(levels, (level) => level * scale);
    this.length = this.z.length / width;
  }

  latent(number) {
    return this.z.slice(number * this.width, (number + 1) * this.width);
  }

  draw(canvas, number) {
    morph(canvas, this.latent(number), String(number));
  }

  // The numbers of the pictures nearest to z.
  nearest(z, count) {
    const distances = Array.from({ length: this.length }, (_, number) => {
      let sum = 0;
      for (let d = 0; d < this.width; d++) sum += (this.z[number * this.width + d] - z[d]) ** 2;
      return [sum, number];
    });
    return distances.sort(([one], [other]) => one - other).slice(0, count).map(([, number]) => number);
  }
}

const picturesOf = (described) => described && (described.images ? new Sheets(described) : new Latents(described));
const pictureSize = data.live && data.live.size;

function canvasFor(pictures, width = pictures.size[0], attributes = {}) {
  const canvas = make("canvas", { role: "img", ...attributes });
  canvas.width = width;
  canvas.height = pictures.size[1];
  return canvas;
}

// What the judge reads off the picture of z, attribute codes; of pixels drawn in black and white where data are so.
function judgePicture(z, next) {
  const pixels = live.decoder.run(z);
  const seen = data.live.binary ? pixels.map((value) => (next() < value ? 1 : 0)) : pixels.map((value) => Math.min(1, Math.max(0, value)));
  return Uint8Array.from(readLogits(live.judge.run(seen)), ([code]) => code);
}

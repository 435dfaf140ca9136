// ---------------------------------------------------------------- mixtures of whole descriptions; random numbers

// Uniform numbers from 0 to 1 (sfc32), the same for the same key everywhere.
function randomStream(...key) {
  let [a, b, c, d] = [1779033703, 3144134277, 1013904242, 2773480762];
  for (const letter of key.join(" ")) {
    const code = letter.codePointAt(0);
    a = b ^ Math.imul(a ^ code, 597399067);
    b = c ^ Math.imul(b ^ code, 2869860233);
    c = d ^ Math.imul(c ^ code, 951274213);
    d = a ^ Math.imul(d ^ code, 2716044179);
  }
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum | 0;
    return (sum >>> 0) / 4294967296;
  };
  for (let n = 0; n < 15; n++) next();
  return next;
}

// Numbers from N(0, 1).
function gaussian(next, size) {
  const drawn = new Float32Array(size);
  for (let n = 0; n < size; n += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - next()));
    const angle = 2 * Math.PI * next();
    drawn[n] = radius * Math.cos(angle);
    if (n + 1 < size) drawn[n + 1] = radius * Math.sin(angle);
  }
  return drawn;
}

// Whole descriptions with the number of training examples that have each; those without any come last.
class Descriptions {
  constructor(rows, counts, odds, sizes) {
    this.rows = new Int16Array(bytes(rows).buffer);
    this.counts = counts;
    this.odds = odds; // of a wrong word against the right one
    this.sizes = sizes; // numbers of values
    this.length = counts.length;
    this.width = this.length ? this.rows.length / this.length : 0;
    const unseen = counts.findIndex((count) => !count);
    this.trained = unseen < 0 ? this.length : unseen;
  }

  row(number) {
    return this.rows.subarray(number * this.width, (number + 1) * this.width);
  }

  // How many parts of a wish a description has, lacks and leaves open, and how likely they are under its kernel; excluded
  // values of an attribute are one part.
  agreement(number, { chosen, excluded }) {
    const found = { right: 0, wrong: 0, open: 0, likely: 1 };
    this.row(number).forEach((value, m) => {
      if (chosen[m] === ANY && !excluded[m].size) return;
      const right = chosen[m] === ANY ? !excluded[m].has(value) : value === chosen[m];
      const total = 1 + (this.sizes[m] - 1) * this.odds;
      found[value === ANY ? "open" : right ? "right" : "wrong"] += 1;
      found.likely *= value === ANY ? 1 / this.sizes[m] : (right ? 1 : this.odds) / total;
    });
    return found;
  }

  // p(description | wish) of the first `count` ones: the shares of training examples that agree with it. Where none does,
  // all lend their other words, each as likely as its words are the wish's with some changed; or, to show what is there,
  // `nearest`, only those that have most of its words.
  shares(wish, count, nearest = false) {
    const found = Array.from({ length: count }, (_, number) => this.agreement(number, wish));
    const best = found.reduce((one, { right }) => Math.max(one, right), 0);
    const whole = found.some(({ right, wrong, open }) => right === best && !wrong && !open);
    const fits = whole || nearest ? ({ right }) => (right === best ? 1 : 0) : ({ likely }) => likely;
    const weights = found.map((one, number) => this.counts[number] * fits(one));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    if (total) return weights.map((weight) => weight / total);
    const every = found.map(fits); // of combinations without examples
    const all = every.reduce((sum, weight) => sum + weight, 0);
    return every.map((weight) => weight / all);
  }

  // Whether any training example has all words of a wish.
  has(wish) {
    return Array.from({ length: this.trained }, (_, number) => this.agreement(number, wish)).some(({ wrong, open }) => !wrong && !open);
  }

  // A whole description for a wish: its own words, and the others of a training description; values that it excludes
  // are replaced by those of the next description.
  complete(wish, number) {
    return wish.chosen.map((value, m) => {
      if (value !== ANY || !this.length) return value;
      for (let step = 0; step < this.trained; step++) {
        const own = this.row((number + step) % this.trained)[m];
        if (!wish.excluded[m].has(own)) return own;
      }
      return ANY;
    });
  }
}

// The place at which shares, added up, exceed a number from 0 to 1.
function pick(shares, uniform) {
  let sum = 0;
  let last = 0;
  for (let n = 0; n < shares.length; n++) {
    if (!shares[n]) continue;
    sum += shares[n];
    last = n;
    if (uniform < sum) return n;
  }
  return last;
}

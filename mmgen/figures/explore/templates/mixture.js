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
  constructor(rows, counts) {
    const levels = bytes(rows).buffer;
    this.rows = new Int16Array(levels);
    this.counts = counts;
    this.length = counts.length;
    this.width = this.length ? this.rows.length / this.length : 0;
    const unseen = counts.findIndex((count) => !count);
    this.trained = unseen < 0 ? this.length : unseen;
  }

  row(number) {
    return this.rows.subarray(number * this.width, (number + 1) * this.width);
  }

  // How many of the words of a wish a description has, where an attribute with excluded values counts as one.
  agreement(number, { chosen, excluded }) {
    const row = this.row(number);
    return row.reduce((sum, value, m) => {
      if (chosen[m] !== ANY) return sum + (value === chosen[m]);
      return sum + (excluded[m].size > 0 && value !== ANY && !excluded[m].has(value));
    }, 0);
  }

  // p(description | wish) of the first `count` ones: the shares of training examples that agree with it, or else that
  // agree with most of its words.
  shares(wish, count) {
    const agreements = Array.from({ length: count }, (_, number) => this.agreement(number, wish));
    const best = agreements.reduce((one, other) => Math.max(one, other), 0);
    const weights = agreements.map((one, number) => (one === best ? this.counts[number] : 0));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    if (total) return weights.map((weight) => weight / total);
    const alike = agreements.filter((one) => one === best).length;
    return agreements.map((one) => (one === best ? 1 / alike : 0));
  }

  // Whether any training example has all words of a wish.
  has(wish) {
    const asked = wish.chosen.filter((value, m) => value !== ANY || wish.excluded[m].size).length;
    return Array.from({ length: this.trained }).some((_, number) => this.agreement(number, wish) === asked);
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

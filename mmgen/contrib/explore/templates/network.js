// ---------------------------------------------------------------- networks, computed for one example at a time

// Bytes of letters, four of five.
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%,()*+-;.=/?@^_`{|}~";
function bytesOfLetters(text) {
  const places = new Uint8Array(128);
  for (let n = 0; n < LETTERS.length; n++) places[LETTERS.charCodeAt(n)] = n;
  const found = new Uint8Array((text.length / 5) * 4);
  for (let n = 0, at = 0; n < text.length; at += 4) {
    let value = 0;
    for (const end = n + 5; n < end; n++) value = value * 85 + places[text.charCodeAt(n)];
    found[at] = value / 16777216;
    found[at + 1] = value >>> 16;
    found[at + 2] = value >>> 8;
    found[at + 3] = value;
  }
  return found;
}

// Integers of `bits` bits in two's complement, the highest bit first.
function unpack(packed, bits, count) {
  const levels = new Int16Array(count);
  const half = 1 << (bits - 1);
  let buffer = 0;
  let have = 0;
  let at = 0;
  for (let n = 0; n < count; n++) {
    while (have < bits) {
      buffer = (buffer << 8) | packed[at++];
      have += 8;
    }
    have -= bits;
    const value = buffer >>> have;
    buffer &= (1 << have) - 1;
    levels[n] = value & half ? value - 2 * half : value;
  }
  return levels;
}

// out[o * down + p * across] = bias[o] + sum of w[o, k] x[p, k] over k, for o < rows and p < columns.
// Four rows and two columns together need the fewest reads.
function multiply(w, x, rows, depth, columns, bias, out, down, across) {
  const even = columns - (columns % 2);
  const whole = rows - (rows % 4);
  for (let p = 0; p < even; p += 2) {
    const first = p * depth;
    for (let o = 0; o < whole; o += 4) {
      let [a, b, c, d] = bias ? [bias[o], bias[o + 1], bias[o + 2], bias[o + 3]] : [0, 0, 0, 0];
      let [e, f, g, h] = [a, b, c, d];
      let i = o * depth;
      let j = i + depth;
      let k = j + depth;
      let l = k + depth;
      for (let n = first, m = first + depth; n < first + depth; n++, m++) {
        const [left, right] = [x[n], x[m]];
        const [q, r, s, t] = [w[i++], w[j++], w[k++], w[l++]];
        a += q * left;
        b += r * left;
        c += s * left;
        d += t * left;
        e += q * right;
        f += r * right;
        g += s * right;
        h += t * right;
      }
      const at = o * down + p * across;
      out[at] = a;
      out[at + down] = b;
      out[at + 2 * down] = c;
      out[at + 3 * down] = d;
      out[at + across] = e;
      out[at + across + down] = f;
      out[at + across + 2 * down] = g;
      out[at + across + 3 * down] = h;
    }
  }
  for (let p = 0; p < columns; p++) {
    const first = p * depth;
    let o = p < even ? whole : 0;
    for (; o < whole; o += 4) {
      let [a, b, c, d] = bias ? [bias[o], bias[o + 1], bias[o + 2], bias[o + 3]] : [0, 0, 0, 0];
      let i = o * depth;
      let j = i + depth;
      let k = j + depth;
      let l = k + depth;
      for (let n = first; n < first + depth; n++) {
        const value = x[n];
        a += w[i++] * value;
        b += w[j++] * value;
        c += w[k++] * value;
        d += w[l++] * value;
      }
      const at = o * down + p * across;
      out[at] = a;
      out[at + down] = b;
      out[at + 2 * down] = c;
      out[at + 3 * down] = d;
    }
    for (; o < rows; o++) {
      let sum = bias ? bias[o] : 0;
      for (let n = first, i = o * depth; n < first + depth; n++, i++) sum += w[i] * x[n];
      out[o * down + p * across] = sum;
    }
  }
}

const unary = (rule) => (_, [x], out) => () => {
  for (let n = 0; n < out.length; n++) out[n] = rule(x[n]);
};
const withArguments = (rule) => (step, [x], out) => () => {
  const [a, b] = step.args;
  for (let n = 0; n < out.length; n++) out[n] = rule(x[n], a, b);
};
const binary = (rule) => (_, [x, y], out) => () => {
  for (let n = 0; n < out.length; n++) out[n] = rule(x[n], y[n]);
};
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// For each operation a function of (step, arguments, result) that returns how it is computed.
const operations = {
  relu: unary((x) => (x > 0 ? x : 0)),
  sigmoid: unary(sigmoid),
  silu: unary((x) => x * sigmoid(x)),
  tanh: unary(Math.tanh),
  exp: unary(Math.exp),
  neg: unary((x) => -x),
  sin: unary(Math.sin),
  cos: unary(Math.cos),
  abs: unary(Math.abs),
  elu: withArguments((x, alpha) => (x > 0 ? x : alpha * Math.expm1(x))),
  softplus: withArguments((x, beta, limit) => (x * beta > limit ? x : Math.log1p(Math.exp(x * beta)) / beta)),
  "leaky relu": withArguments((x, slope) => (x > 0 ? x : slope * x)),
  clamp: withArguments((x, low, high) => Math.min(high ?? Infinity, Math.max(low ?? -Infinity, x))),
  add: binary((x, y) => x + y),
  sub: binary((x, y) => x - y),
  mul: binary((x, y) => x * y),
  div: binary((x, y) => x / y),

  // A value for each channel.
  scale: ({ each }, [x, factor, shift], out) => () => {
    for (let n = 0, channel = 0; n < out.length; channel++) {
      for (const end = n + each; n < end; n++) out[n] = x[n] * factor[channel] + shift[channel];
    }
  },

  // Values of each row with mean 0 and standard deviation 1.
  normalise: ({ each, eps }, [x], out) => () => {
    for (let first = 0; first < out.length; first += each) {
      let [sum, squares] = [0, 0];
      for (let n = first; n < first + each; n++) sum += x[n];
      const mean = sum / each;
      for (let n = first; n < first + each; n++) squares += (x[n] - mean) ** 2;
      const factor = 1 / Math.sqrt(squares / each + eps);
      for (let n = first; n < first + each; n++) out[n] = (x[n] - mean) * factor;
    }
  },

  linear: ({ inputs, outputs }, [x, w, bias], out) => () =>
    multiply(w, x, outputs, inputs, x.length / inputs, bias, out, 1, outputs),

  // A view with strides, as a table of places.
  strided: ({ sizes, strides, offset }, [x], out) => {
    const places = new Int32Array(out.length);
    const counts = sizes.map(() => 0);
    for (let n = 0, at = offset; n < out.length; n++) {
      places[n] = at;
      for (let axis = sizes.length - 1; axis >= 0; axis--) {
        at += strides[axis];
        if (++counts[axis] < sizes[axis]) break;
        at -= sizes[axis] * strides[axis];
        counts[axis] = 0;
      }
    }
    return () => {
      for (let n = 0; n < out.length; n++) out[n] = x[places[n]];
    };
  },

  cat: ({ outer, inner }, parts, out) => () => {
    for (let row = 0, at = 0; row < outer; row++) {
      parts.forEach((part, n) => {
        out.set(part.subarray(row * inner[n], (row + 1) * inner[n]), at);
        at += inner[n];
      });
    }
  },

  // The pixels under the kernel side by side, times the weights.
  conv: ({ size, out: after, kernel, stride, padding }, [x, w, bias], out) => {
    const [channels, height, width] = size;
    const [outputs, down, across] = after;
    const depth = channels * kernel[0] * kernel[1];
    const columns = new Float32Array(down * across * depth);
    return () => {
      columns.fill(0);
      for (let row = 0; row < down; row++) {
        for (let column = 0; column < across; column++) {
          let at = (row * across + column) * depth;
          for (let c = 0; c < channels; c++) {
            for (let ky = 0; ky < kernel[0]; ky++) {
              const y = row * stride[0] + ky - padding[0];
              for (let kx = 0; kx < kernel[1]; kx++, at++) {
                const place = column * stride[1] + kx - padding[1];
                if (y >= 0 && y < height && place >= 0 && place < width) columns[at] = x[(c * height + y) * width + place];
              }
            }
          }
        }
      }
      multiply(w, columns, outputs, depth, down * across, bias, out, down * across, 1);
    };
  },

  // The kernel, times each pixel, laid over the result.
  unconv: ({ size, out: after, kernel, stride, padding }, [x, w, bias], out) => {
    const [channels, height, width] = size;
    const [outputs, down, across] = after;
    const spread = outputs * kernel[0] * kernel[1];
    const weights = new Float32Array(w.length);
    for (let c = 0; c < channels; c++) for (let n = 0; n < spread; n++) weights[n * channels + c] = w[c * spread + n];
    const pixels = new Float32Array(x.length);
    const patches = new Float32Array(height * width * spread);
    return () => {
      for (let c = 0; c < channels; c++) {
        for (let n = 0; n < height * width; n++) pixels[n * channels + c] = x[c * height * width + n];
      }
      multiply(weights, pixels, spread, channels, height * width, null, patches, 1, spread);
      for (let o = 0; o < outputs; o++) out.fill(bias ? bias[o] : 0, o * down * across, (o + 1) * down * across);
      for (let y = 0, at = 0; y < height; y++) {
        for (let column = 0; column < width; column++) {
          for (let o = 0; o < outputs; o++) {
            for (let ky = 0; ky < kernel[0]; ky++) {
              const row = y * stride[0] + ky - padding[0];
              for (let kx = 0; kx < kernel[1]; kx++, at++) {
                const place = column * stride[1] + kx - padding[1];
                if (row >= 0 && row < down && place >= 0 && place < across) out[(o * down + row) * across + place] += patches[at];
              }
            }
          }
        }
      }
    };
  },

  // Bilinear enlargement.
  resize: ({ size, out: after, corners }, [x], out) => {
    const [channels, height, width] = size;
    const [down, across] = after;
    const place = (n, from, to) => {
      const at = corners ? (to > 1 ? (n * (from - 1)) / (to - 1) : 0) : Math.max(0, ((n + 0.5) * from) / to - 0.5);
      const low = Math.min(from - 1, Math.floor(at));
      return [low, Math.min(from - 1, low + 1), at - low];
    };
    return () => {
      for (let c = 0, n = 0; c < channels; c++) {
        const value = (row, column) => x[(c * height + row) * width + column];
        for (let row = 0; row < down; row++) {
          const [top, bottom, v] = place(row, height, down);
          for (let column = 0; column < across; column++, n++) {
            const [left, right, h] = place(column, width, across);
            const above = value(top, left) * (1 - h) + value(top, right) * h;
            out[n] = above * (1 - v) + (value(bottom, left) * (1 - h) + value(bottom, right) * h) * v;
          }
        }
      }
    };
  },

  // Bilinear reading at places from -1 to 1; there is nothing outside.
  sample: ({ size, out: after }, [x, places], out) => {
    const [channels, height, width] = size;
    const [down, across] = after;
    const value = (c, row, column) =>
      row >= 0 && row < height && column >= 0 && column < width ? x[(c * height + row) * width + column] : 0;
    return () => {
      for (let n = 0; n < down * across; n++) {
        const column = ((places[2 * n] + 1) * width - 1) / 2;
        const row = ((places[2 * n + 1] + 1) * height - 1) / 2;
        const [left, top] = [Math.floor(column), Math.floor(row)];
        const [h, v] = [column - left, row - top];
        for (let c = 0; c < channels; c++) {
          const above = value(c, top, left) * (1 - h) + value(c, top, left + 1) * h;
          const below = value(c, top + 1, left) * (1 - h) + value(c, top + 1, left + 1) * h;
          out[c * down * across + n] = above * (1 - v) + below * v;
        }
      }
    };
  },
};

class Network {
  constructor(described) {
    this.described = described;
  }

  // Unpacks the weights, when the network is first needed.
  prepare() {
    const { steps, sizes, output, constants, weights, numbers } = this.described;
    const packed = bytesOfLetters(weights);
    const exact = new Float32Array(bytesOfLetters(numbers).buffer);
    let [first, number] = [0, 0];
    const fixed = constants.map(([size, rows, bits]) => {
      if (!rows) return exact.subarray(number, (number += size));
      const levels = unpack(packed.subarray(first, (first += Math.ceil((size * bits) / 8))), bits, size);
      const values = new Float32Array(size);
      for (let n = 0; n < size; number++) {
        const scale = exact[number];
        for (const end = n + size / rows; n < end; n++) values[n] = levels[n] * scale;
      }
      return values;
    });
    this.values = sizes.map((size) => new Float32Array(size));
    const find = (place) => (place < 0 ? fixed[-1 - place] : this.values[place]);
    this.steps = steps.map((step) => operations[step.op](step, step.x.map(find), this.values[step.y]));
    this.output = this.values[output];
  }

  // Where the input belongs.
  get input() {
    if (!this.steps) this.prepare();
    return this.values[0];
  }

  // The output, which the next call overwrites.
  run(input) {
    this.input.set(input);
    for (const step of this.steps) step();
    return this.output;
  }
}

const live = data.live && {
  decoder: new Network(data.live.decoder),
  words: data.live.words && new Network(data.live.words),
  encoder: data.live.encoder && new Network(data.live.encoder),
  judge: data.live.judge && new Network(data.live.judge),
};

// The likeliest value of each attribute by logits side by side, with its probability: [code, share] for each.
function readLogits(logits) {
  let at = 0;
  return words.values.map((values) => {
    const own = logits.subarray(at, (at += values.length));
    const top = Math.max(...own);
    const mass = own.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
    return [own.indexOf(top), 1 / mass];
  });
}
const believe = (z) => readLogits(live.words.run(z));
// The model's reading of z in words, with shares where it is not sure.
function modelReads(z) {
  if (!live.words) return "";
  return believe(z)
    .map(([code, share], a) => valueOf(a, code) + (share < 0.9 ? ` (${Math.round(100 * share)}\u00a0%)` : ""))
    .join(", ");
}

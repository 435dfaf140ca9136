// ---------------------------------------------------------------- flows: noise is carried to z

// Attribute codes as a flow reads them: one-hot values side by side, then which attributes are known.
function describe(codes) {
  const sizes = words.values.map((values) => values.length);
  const size = sizes.reduce((sum, each) => sum + each, 0);
  const context = new Float32Array(size + sizes.length);
  let first = 0;
  sizes.forEach((each, a) => {
    if (codes[a] < each && codes[a] >= 0) context[first + codes[a]] = context[size + a] = 1;
    first += each;
  });
  return context;
}

class Flow {
  constructor({ network, steps, shift, scale }) {
    Object.assign(this, { steps, shift, scale, network: new Network(network) });
  }

  velocity(u, t, context) {
    const { input } = this.network; // point, time and context side by side
    input.set(u);
    input[u.length] = t;
    input.set(context, u.length + 1);
    return this.network.run(input);
  }

  // Under classifier-free guidance: away from the velocity without words.
  guided(u, t, context, steered) {
    if (!steered || t < steered.start || t > steered.end) return this.velocity(u, t, context);
    const blank = this.velocity(u, t, new Float32Array(context.length)).slice();
    const along = this.velocity(u, t, context);
    return along.map((value, d) => (1 + steered.weight) * value - steered.weight * blank[d]);
  }

  // z of noise and a context, by the midpoint rule.
  draw(noise, context, steered) {
    const step = 1 / this.steps;
    let u = noise;
    for (let number = 0; number < this.steps; number++) {
      const t = number * step;
      const half = this.guided(u, t, context, steered).map((value, d) => u[d] + (step / 2) * value);
      u = this.guided(half, t + step / 2, context, steered).map((value, d) => u[d] + step * value);
    }
    return u.map((value, d) => this.shift[d] + this.scale[d] * value);
  }
}
if (live) live.flows = data.live.flows.map((described) => new Flow(described));

// ---------------------------------------------------------------- a guided tour of four steps

{
  const part = parts[0];
  const find = (...kinds) => (part ? part.sources.find((source) => kinds.includes(source.kind)) : undefined);
  const believed = find("true", "own");
  const shown = (source) => source && (source.draws || source.clouds);
  const belief = (shown(believed) && believed) || part?.belief;
  const real = find("aggregate");
  const best = find("guided") ?? real;
  const box = byId("tour");
  const asked = () => part.inWords();
  const right = (source) => {
    const share = /^Here (\d+) of (\d+)/.exec(source?.line.textContent ?? "");
    return share ? ` A judge finds ${share[1]} of ${share[2]} words in them.` : "";
  };
  const steps = part && data.map && shown(real) ? [
    {
      at: "words",
      say: () => `You choose words, here “${asked()}”. The model knows no words when it draws: it turns a list of numbers, a code, into a picture. So the question is which codes belong to these words.`,
    },
    {
      at: "map",
      density: belief,
      say: () =>
        belief && (belief !== part.belief || part.isOpening())
          ? `Each dot on this map is the code of a real picture. The shaded area is where the model believes the codes of “${asked()}” to be: codes off which it reads these words. Shade and dots are at different places. Where dots are few, hardly any real picture has such a code, so nobody taught the model what to draw there.`
          : "Each dot on this map is the code of a real picture. Most of the map has few dots or none: no real picture has such a code, so nobody ever taught the model what to draw there. Move the pointer into a gap and look at what is decoded.",
    },
    {
      at: "map",
      density: real,
      say: () => `Now the shaded area is where the codes of real pictures with the words “${asked()}” lie. It was learned after the model, from the codes of all training pictures and their words. It is called the aggregated posterior.`,
    },
    {
      at: "parts",
      say: () => `Pictures of the same words from each area. “${best.plain}”:${right(best) || " drawn from codes that real pictures have."}` +
        (believed ? ` “${believed.plain}”:${right(believed) || " partly from codes that no real picture has."}` : "") +
        (document.querySelector("#parts .wrong") ? " Red frames are pictures with a wrong word." : "") +
        " Choose other words, and compare.",
    },
  ] : [];
  let place = -1;

  const go = (next) => {
    if (next === 0 && belief && belief === part.belief && !part.isOpening()) part.open(); // the words whose belief is known
    place = next;
    const step = steps[place];
    box.hidden = !step;
    document.body.classList.toggle("touring", Boolean(step));
    if (!step) {
      chooseDensity(null);
      return byId("tour-start").focus();
    }
    if (step.at === "map") chooseDensity(step.density);
    byId("tour-says").textContent = step.say();
    byId("tour-place").textContent = `${place + 1} of ${steps.length}`;
    byId("tour-back").disabled = place === 0;
    byId("tour-next").textContent = place === steps.length - 1 ? "Done" : "Next";
    byId(step.at).scrollIntoView({ behavior: still.matches ? "auto" : "smooth" });
    box.focus({ preventScroll: true });
  };
  if (steps.length) {
    byId("tour-start").hidden = false;
    byId("tour-start").addEventListener("click", () => go(0));
    byId("tour-next").addEventListener("click", () => go(place + 1));
    byId("tour-back").addEventListener("click", () => go(place - 1));
    byId("tour-end").addEventListener("click", () => go(-1));
    box.addEventListener("keydown", (event) => event.key === "Escape" && go(-1));
    part.listeners.push(() => steps[place] && (byId("tour-says").textContent = steps[place].say()));
  }
}

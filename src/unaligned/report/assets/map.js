// The map of the datasets: near means similar.

const METHODS = { mds: "MDS", diffusion: "diffusion map" };

function drawMap() {
  if (!data.maps.length) {
    const figure = byId("heatmap")?.parentElement;
    figure?.parentElement.querySelector(".controls").append(byId("colour").closest("label"));
    figure?.querySelector(".chart").after(byId("legend"));
    absent("map", mapReason());
    return;
  }
  const container = byId("embedding");
  let cursor = -1;
  let spots = [];

  const current = () => data.maps.find((map) => map.method === state.method);

  function draw(width) {
    const height = Math.round(Math.max(...data.maps.map(({ places }) => wanted(places, width))));
    const picture = canvas(width, height);
    spots = project(current().places, width, height);
    const joined = state.join && orderedByTag();
    if (joined) picture.append(svg("path", { d: path(joined.map((i) => spots[i])), class: "link" }));
    picture.append(svg("g", { class: "between" }));
    spots.forEach(([x, y], i) => {
      const { fill: colour, shape: k } = look(i);
      const marker = svg("path", { d: shape(k, names.length > 80 ? 4 : 6), transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, fill: colour, stroke: "var(--paper)" });
      picture.append(marker);
    });
    if (names.length <= 60) label(picture, width, height);
    picture.append(svg("g", { class: "marks" }));
    place(container, picture);
    mark();
  }

  const span = (list) => Math.max(...list) - Math.min(...list);

  // As high as the map is for its width, within reason; the same for all methods, so that
  // switching moves nothing.
  function wanted(places, width) {
    const [across, up] = [0, 1].map((axis) => span(places.map((place) => place[axis])));
    return clamp(((width - 110) * up) / (across || 1) + 64, 220, clamp(0.8 * width, 260, 520));
  }

  // One scale for both axes: distances on the map are distances.
  function project(places, width, height) {
    const [xs, ys] = [places.map((p) => p[0]), places.map((p) => p[1])];
    const middle = (list) => (Math.min(...list) + Math.max(...list)) / 2;
    const scale = Math.min((width - 110) / (span(xs) || 1e-9), (height - 56) / (span(ys) || 1e-9));
    const factor = Number.isFinite(scale) ? Math.min(scale, width / (Math.max(span(xs), span(ys)) || 1)) : 0;
    return places.map(([x, y]) => [width / 2 + (x - middle(xs)) * factor, height / 2 - (y - middle(ys)) * factor]);
  }

  // Names where there is room; the others show when pointed at.
  function label(picture, width, height) {
    const taken = spots.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
    spots.forEach(([x, y], i) => {
      const words = shortened(names[i], 18);
      const long = 6.7 * [...words].length;
      const sides = [[13, 4, "start", 0], [-13, 4, "end", -long], [0, -13, "middle", -long / 2], [0, 22, "middle", -long / 2]];
      for (const [dx, dy, anchor, shift] of sides) {
        const start = x + dx + shift;
        const box = [start, y + dy - 11, start + long, y + dy + 3];
        const apart = ([a, b, c, d]) => box[2] < a || box[0] > c || box[3] < b || box[1] > d;
        if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height) continue;
        if (!taken.every((other, k) => k === i || apart(other))) continue;
        taken.push(box);
        picture.append(text(x + dx, y + dy, words, { "text-anchor": anchor, class: "halo" }));
        break;
      }
    });
  }

  function orderedByTag() {
    const tag = data.tags[Number(state.colour)];
    if (!tag || !tag.numeric) return null;
    const known = names.map((_, i) => i).filter((i) => tag.values[i] !== null);
    return known.sort((a, b) => tag.values[a] - tag.values[b] || a - b);
  }

  function mark() {
    const marks = container.querySelector(".marks");
    marks.replaceChildren();
    const between = container.querySelector(".between");
    between.replaceChildren();
    const [a, b] = state.pair;
    if (a !== b) between.append(svg("path", { d: path([spots[a], spots[b]]), class: "gamma" }));
    const ring = (i, r, colour) => marks.append(svg("circle", { cx: spots[i][0], cy: spots[i][1], r, fill: "none", stroke: colour, "stroke-width": 2 }));
    ring(a, 10, "var(--first)");
    ring(b, 10, "var(--second)");
    if (cursor >= 0) ring(cursor, 14, "var(--ink)");
  }

  function words(i) {
    return [names[i], ...tagsOf(i)].join("\n");
  }

  function nearest(x, y) {
    let best = -1;
    let least = 18 ** 2;
    spots.forEach(([a, b], i) => {
      const away = (a - x) ** 2 + (b - y) ** 2;
      if (away < least) [best, least] = [i, away];
    });
    return best;
  }

  pointer(
    container,
    (x, y) => {
      const i = nearest(x, y);
      return i < 0 ? "" : words(i);
    },
    (x, y) => {
      const i = nearest(x, y);
      if (i >= 0) choose(i);
    },
  );
  steered(container, "Map of the datasets. Arrow keys go from dataset to dataset, Enter chooses one for the pair.", "map-caption", (key) => {
    if ((key === "Enter" || key === " ") && cursor >= 0) {
      choose(cursor);
      announce(`${names[cursor]} chosen`);
      return true;
    }
    if (!STEPS[key]) return false;
    const at = data.order.indexOf(cursor) + STEPS[key][0] + STEPS[key][1];
    cursor = data.order[clamp(at, 0, names.length - 1)];
    mark();
    announce(words(cursor));
    return true;
  });
  container.addEventListener("blur", () => {
    cursor = -1;
    mark();
  });
  mapControls();
  const redraw = responsive(container, draw);
  listen(["method", "colour", "join", "theme"], redraw);
  listen(["pair"], mark);
}

function mapControls() {
  const methods = byId("method");
  data.maps.forEach(({ method }) => {
    const radio = html("input", { type: "radio", name: "method", value: method });
    radio.checked = method === state.method;
    radio.addEventListener("change", () => change({ method }));
    methods.append(html("label", {}, radio, METHODS[method]));
  });
  byId("join").addEventListener("change", (event) => change({ join: event.target.checked }));
  const tell = () => {
    const { agreement } = data.maps.find((map) => map.method === state.method);
    const agree = agreement === null ? "" : ` Distances on it and the real ones correlate at ${agreement.toFixed(2)}.`;
    const what = state.method === "mds" ? "Classical scaling: distances on the map resemble the real ones as well as two dimensions allow." : "Diffusion coordinates: near neighbours count, far ones hardly.";
    byId("map-caption").textContent = `${what}${agree} Choose two datasets to compare them below.`;
  };
  tell();
  listen(["method"], tell);
}

// Colours belong to the map, the heatmap's strip and the spectra alike.
function colourControls() {
  const select = byId("colour");
  const options = [["none", "nothing"]];
  if (data.groups) options.push(["group", "group found"]);
  options.push(...data.tags.map((tag, k) => [String(k), tag.name]));
  choices(select, options, (colour) => change({ colour }));
  select.value = state.colour;
  select.closest("label").hidden = options.length < 2;
  const tell = () => {
    const tag = data.tags[Number(state.colour)];
    byId("join-label").hidden = !(tag && tag.numeric);
    byId("legend").replaceChildren(...legend(tag));
  };
  tell();
  listen(["colour", "theme"], tell);
}

function legend(tag) {
  if (state.colour === "none") return [];
  if (tag && tag.numeric) {
    const [low, high] = tagRange(tag);
    return [html("span", {}, tag.name), gradient(told(low), told(high), tint)];
  }
  const words = tag ? tag.groups : [...new Set(data.groups)].sort((a, b) => a - b).map((k) => `group ${k + 1}`);
  return words.map((word, k) => {
    const marker = svg("path", { d: shape(k, 5), transform: "translate(8 8)", fill: category(k) });
    return html("span", {}, svg("svg", { width: 16, height: 16, "aria-hidden": "true" }, marker), word);
  });
}

function mapReason() {
  if (!data.isSquare) return "A map needs distances within one collection; this compares datasets with references.";
  if (names.length < 3) return "A map needs at least three datasets.";
  return "There is no map: the distances are all 0 or not all finite.";
}

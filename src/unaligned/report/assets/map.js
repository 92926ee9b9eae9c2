// The map of the datasets: near means similar.

const METHODS = { mds: "MDS", diffusion: "diffusion map" };

class DatasetMap extends InteractiveChart {
  constructor() {
    super(
      "embedding",
      "Map of the datasets. Arrow keys move from dataset to dataset, Enter chooses one for the pair.",
      "map-caption",
    );
    this.start(["method", "colour", "join", "theme"]);
  }

  picture(width) {
    const height = Math.max(...data.maps.map(({ places }) => heightFor(places, width)));
    const picture = canvas(width, height);
    this.spots = project(currentMap().places, width, height);
    const joined = (state.join && orderedByTag()) || [];
    picture.append(svg("path", { d: path(joined.map((i) => this.spots[i])), class: "link" }));
    picture.append(svg("g", { class: "between" }));
    picture.append(...this.spots.map((spot, i) => this.marker(spot, i)));
    if (names.length <= 60) picture.append(...this.labels(width, height));
    picture.append(svg("g", { class: "marks" }));
    return picture;
  }

  marker([x, y], i) {
    const { fill: colour, shape: k } = look(i);
    const d = shape(k, names.length > 80 ? 4 : 6);
    const transform = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
    return svg("path", { d, transform, fill: colour, stroke: "var(--paper)" });
  }

  // Names where there is room; the others appear under the pointer.
  labels(width, height) {
    const taken = this.spots.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
    const free = (box, i) =>
      box[0] >= 0 &&
      box[2] <= width &&
      box[1] >= 0 &&
      box[3] <= height &&
      taken.every((other, k) => k === i || apart(box, other));
    return this.spots.flatMap(([x, y], i) => {
      const words = shortened(names[i], 18);
      const side = sides(x, y, 6.7 * [...words].length).find(({ box }) => free(box, i));
      if (!side) return [];
      taken.push(side.box);
      return [text(side.x, side.y, words, { "text-anchor": side.anchor, class: "halo" })];
    });
  }

  mark() {
    const { marks, spots } = this;
    const [a, b] = state.pair;
    const link = svg("path", { d: a === b ? "" : path([spots[a], spots[b]]), class: "gamma" });
    this.container.querySelector(".between").replaceChildren(link);
    marks.append(ring(...spots[a], 10, "var(--first)"), ring(...spots[b], 10, "var(--second)"));
    if (this.at !== null) marks.append(ring(...spots[this.at], 14, "var(--ink)"));
  }

  at = null;

  words() {
    return this.at === null ? "" : [names[this.at], ...tagsOf(this.at)].join("\n");
  }

  point(x, y) {
    this.at = nearest(this.spots, x, y, 18);
    return this.words();
  }

  step(down, right) {
    const from = this.at === null ? -1 : data.order.indexOf(this.at);
    this.at = data.order[clamp(from + down + right, 0, names.length - 1)];
    return this.words();
  }

  pick() {
    if (this.at === null) return;
    choose(this.at);
    announce(`${names[this.at]} chosen`);
  }
}

const currentMap = () => data.maps.find((map) => map.method === state.method);
const span = (list) => limits(list)[1] - limits(list)[0];
const middle = (list) => (limits(list)[0] + limits(list)[1]) / 2;
const apart = (p, q) => p[2] < q[0] || p[0] > q[2] || p[3] < q[1] || p[1] > q[3];

// The height follows the aspect ratio, within limits; it is the largest over all methods, so
// that switching does not move the page.
function heightFor(places, width) {
  const [across, up] = [0, 1].map((axis) => span(places.map((place) => place[axis])));
  const wanted = ((width - 110) * up) / (across || 1) + 64;
  return Math.round(clamp(wanted, 220, clamp(0.8 * width, 260, 520)));
}

// One scale for both axes, so that distances on the map are comparable.
function project(places, width, height) {
  const [xs, ys] = [0, 1].map((axis) => places.map((place) => place[axis]));
  const fits = [(width - 110) / span(xs), (height - 56) / span(ys)].filter(Number.isFinite);
  const scale = fits.length ? Math.min(...fits) : 0;
  const [x0, y0] = [middle(xs), middle(ys)];
  return places.map(([x, y]) => [width / 2 + (x - x0) * scale, height / 2 - (y - y0) * scale]);
}

// The places of a label around its point: right, left, above, below.
function sides(x, y, long) {
  return [
    [13, 4, "start", 0],
    [-13, 4, "end", -long],
    [0, -13, "middle", -long / 2],
    [0, 22, "middle", -long / 2],
  ].map(([dx, dy, anchor, shift]) => {
    const [start, base] = [x + dx + shift, y + dy];
    return { x: x + dx, y: base, anchor, box: [start, base - 11, start + long, base + 3] };
  });
}

function orderedByTag() {
  const tag = data.tags[Number(state.colour)];
  if (!tag || !tag.numeric) return null;
  const known = names.map((_, i) => i).filter((i) => tag.values[i] !== null);
  return known.sort((a, b) => tag.values[a] - tag.values[b] || a - b);
}

function drawMap() {
  if (data.maps.length) {
    mapControls();
    new DatasetMap();
    return;
  }
  // The colour control moves to the heatmap, which uses it too.
  const figure = byId("heatmap")?.parentElement;
  figure?.parentElement.querySelector(".controls").append(byId("colour").closest("label"));
  figure?.querySelector(".chart").after(byId("legend"));
  replaceSection("map", mapReason());
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
    const { agreement } = currentMap();
    const agree =
      agreement === null
        ? ""
        : ` Its distances and the true ones correlate at ${agreement.toFixed(2)}.`;
    const what =
      state.method === "mds"
        ? "Classical multidimensional scaling: distances on the map approximate the true ones."
        : "Diffusion coordinates: near neighbours dominate.";
    byId("map-caption").textContent = `${what}${agree} Choose two datasets to compare them below.`;
  };
  tell();
  listen(["method"], tell);
}

// Colours apply to the map, the heatmap's strip and the spectra.
function colourControls() {
  const select = byId("colour");
  const options = [["none", "nothing"]];
  if (data.groups) options.push(["group", "group"]);
  options.push(...data.tags.map((tag, k) => [String(k), tag.name]));
  choices(select, options, (colour) => change({ colour }));
  select.value = state.colour;
  select.closest("label").hidden = options.length < 2;
  // Looked up first: without a map they are removed with it.
  const [join, key] = [byId("join-label"), byId("legend")];
  const tell = () => {
    const tag = data.tags[Number(state.colour)];
    join.hidden = !(tag && tag.numeric);
    key.replaceChildren(...legend(tag));
  };
  tell();
  listen(["colour", "theme"], tell);
}

function legend(tag) {
  if (state.colour === "none") return [];
  if (tag && tag.numeric) {
    const [low, high] = tagRange(tag);
    return [html("span", {}, tag.name), gradient(formatted(low), formatted(high), tint)];
  }
  const words = tag
    ? tag.groups
    : [...new Set(data.groups)].sort((a, b) => a - b).map((k) => `group ${k + 1}`);
  return words.map((word, k) => {
    const marker = svg("path", { d: shape(k, 5), transform: "translate(8 8)", fill: category(k) });
    return html(
      "span",
      {},
      svg("svg", { width: 16, height: 16, "aria-hidden": "true" }, marker),
      word,
    );
  });
}

function mapReason() {
  if (!data.isSquare)
    return "A map needs the distances within one collection; this report compares datasets with references.";
  if (names.length < 3) return "A map needs at least three datasets.";
  return "A map needs finite distances that are not all 0.";
}

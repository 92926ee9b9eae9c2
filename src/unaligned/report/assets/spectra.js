// All spectra on one logarithmic axis, with γ and error bands.

const MOST_LABELS = 16;

class Spectra extends InteractiveChart {
  constructor() {
    super(
      "lines",
      "Spectra. Left and right move along a spectrum, up and down to another dataset.",
      "spectra-caption",
    );
    this.count = spectra.names.length;
    this.cursor = { row: 0, column: 0 };
    this.start(["colour", "theme"]);
  }

  picture(width) {
    const height = Math.round(clamp(0.42 * width, 280, 460));
    const picture = canvas(width, height);
    const labelled = this.count <= MOST_LABELS;
    const letters = Math.max(...spectra.names.map((name) => [...shortened(name, 14)].length));
    const own = labelled ? clamp(16 + 6.8 * letters, 30, 0.25 * width) : 14;
    const box = { left: 48, right: width - own, top: 26, bottom: height - 44 };
    this.scales = spectralScales(spectra.logs, box);
    axes(picture, box, this.scales.x, this.scales.y);
    gammaLine(picture, box, this.scales.y);
    for (let i = 0; i < this.count; i += 1) picture.append(...this.curve(i));
    if (labelled) picture.append(...this.endLabels(box));
    picture.append(svg("g", { class: "marks" }));
    return picture;
  }

  // References of a rectangular comparison are dashed.
  curve(i) {
    const isReference = i >= names.length;
    const colour = isReference ? "var(--quiet)" : this.colour(i);
    const stroke = spectralLine(i, this.scales, {
      stroke: colour,
      "stroke-width": this.count > 20 ? 1.1 : 1.8,
      "stroke-dasharray": isReference ? "5 3" : null,
      opacity: this.count > 40 ? 0.6 : 0.95,
    });
    return [errorBand(i, this.scales, colour), stroke];
  }

  // Where the colouring is the same for all, each spectrum has its own colour.
  colour(i) {
    if (!allAlike()) return look(i).fill;
    return names.length <= data.colours.length ? category(i) : "var(--first)";
  }

  endLabels(box) {
    const ends = spectra.logs.map((row) => this.scales.y.scale(row[spectra.k - 1]));
    const heights = spread(ends, 14, box.bottom);
    return ends.flatMap((end, i) => [
      svg("path", {
        d: path([
          [box.right, end],
          [box.right + 8, heights[i]],
        ]),
        class: "link",
      }),
      text(box.right + 11, heights[i] + 4, shortened(spectra.names[i], 14)),
    ]);
  }

  at = null;

  mark() {
    const { marks, scales, at } = this;
    if (!at) return;
    marks.append(spectralLine(at.row, scales, { class: "cursor" }));
    const [cx, cy] = [
      scales.x.scale(at.column + 1),
      scales.y.scale(spectra.logs[at.row][at.column]),
    ];
    marks.append(svg("circle", { cx, cy, r: 4, fill: "var(--ink)" }));
  }

  words() {
    if (!this.at) return "";
    const { row, column } = this.at;
    const error = spectra.errors[row][column];
    const known = Number.isFinite(error);
    const about = known ? `error of its logarithm ≤ ${formatted(error, 2)}` : "no error bound";
    const eigenvalue = `λ${column + 1} = ${formatted(spectra.eigenvalues[row][column])}`;
    return [spectra.names[row], eigenvalue, about].join("\n");
  }

  point(x, y) {
    const { x: across, y: up } = this.scales;
    const column = Math.round((x - across.scale(1)) / (across.scale(2) - across.scale(1)));
    this.at = null;
    if (column < 0 || column >= spectra.k) return "";
    const places = spectra.logs.map((row) => [x, up.scale(row[column])]);
    const row = nearest(places, x, y, 30);
    if (row !== null) this.at = { row, column };
    return this.words();
  }

  step(down, right) {
    this.cursor.row = clamp(this.cursor.row + down, 0, this.count - 1);
    this.cursor.column = clamp(this.cursor.column + right, 0, spectra.k - 1);
    this.at = this.cursor;
    return this.words();
  }

  pick() {
    const row = this.at?.row ?? names.length;
    if (data.isSquare && row < names.length) choose(row);
  }
}

// Heights at least `gap` apart: those too close move apart by half the overlap each.
function spread(heights, gap, lowest) {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
  const moved = [...heights];
  for (let pass = 0; pass < 60; pass += 1) {
    order.slice(1).forEach((i, at) => {
      const lack = Math.max(0, gap - (moved[i] - moved[order[at]]));
      moved[order[at]] -= lack / 2;
      moved[i] += lack / 2;
    });
  }
  const over = Math.max(0, moved[order.at(-1)] - lowest);
  return moved.map((height) => height - over);
}

const allAlike = () => new Set(names.map((_, i) => look(i).fill)).size === 1;

function drawSpectra() {
  if (!spectra) {
    const reason = `The distance ${data.distance} is not computed from spectra.`;
    replaceSection("spectra", reason);
    return;
  }
  new Spectra();
  const tell = () => {
    const shown = allAlike() ? [] : legend(data.tags[Number(state.colour)]);
    byId("spectra-legend").replaceChildren(...shown);
  };
  tell();
  listen(["colour", "theme"], tell);
  const dashed = data.isSquare ? "" : " References are dashed grey.";
  byId("spectra-caption").textContent =
    `The ${spectra.k} largest eigenvalues of each dataset.${dashed} Values below the dashed ` +
    "γ line count as noise. Bands show the error bound; where none is visible it is thinner " +
    "than the line.";
}

function spectralLine(i, { x, y }, attributes) {
  const points = [...spectra.logs[i]].map((value, j) => [x.scale(j + 1), y.scale(value)]);
  return svg("path", { d: path(points), fill: "none", ...attributes });
}

function spectralScales(rows, box) {
  let [low, high] = [spectra.gamma > 0 ? Math.log(spectra.gamma) : Infinity, -Infinity];
  for (const row of rows) {
    low = Math.min(low, row[row.length - 1]);
    high = Math.max(high, row[0]);
  }
  return {
    x: countAxis(spectra.k, box.left, box.right),
    y: spectralAxis(low, high, box.bottom, box.top),
  };
}

function gammaLine(picture, box, y) {
  if (!(spectra.gamma > 0)) return;
  const height = y.scale(Math.log(spectra.gamma));
  picture.append(line(box.left, height, box.right, height, "gamma"));
  picture.append(
    text(box.left + 6, height - 6, `γ = ${formatted(spectra.gamma)}`, { class: "quiet halo" }),
  );
}

function errorBand(i, { x, y }, colour) {
  const errors = [...spectra.errors[i]].map((error) => (Number.isFinite(error) ? error : 99));
  if (errors.every((error) => error < 1e-3 || error === 99)) return svg("g");
  const [lowest, highest] = [y.at.at(-1) - Math.LN10, y.at[0] + Math.LN10];
  const edge = (sign) =>
    errors.map((error, j) => {
      const value = spectra.logs[i][j] + sign * error;
      return [x.scale(j + 1), y.scale(clamp(value, lowest, highest))];
    });
  const d = `${path([...edge(1), ...edge(-1).reverse()])}Z`;
  return svg("path", { d, fill: colour, opacity: 0.18 });
}

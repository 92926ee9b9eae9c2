// Distance against the difference of a number, one dot for each pair.

class Scatter extends InteractiveChart {
  constructor() {
    super(
      "scatter",
      "Distances against differences. Arrow keys move from pair to pair, Enter opens the pair above.",
      "correlation-caption",
    );
    this.start(["tag"]);
  }

  picture(width) {
    const height = Math.round(clamp(0.45 * width, 280, 420));
    const picture = canvas(width, height);
    const box = { left: 52, right: width - 14, top: 26, bottom: height - 44 };
    const tag = currentTag();
    this.pairs = pairsOf(tag.values);
    const [x, y] = this.axes(box, tag.name);
    axes(picture, box, x, y);
    this.spots = this.pairs.map((p) => [x.scale(p.difference), y.scale(p.distance)]);
    // One path for all pairs: a dot is a stroke of length 0.
    const d = this.spots.map(([a, b]) => `M${a.toFixed(1)} ${b.toFixed(1)}h0`).join("");
    const dots = svg("path", { d, class: "dots" });
    if (this.spots.length > 1000) dots.style.strokeWidth = 3;
    picture.append(dots, svg("g", { class: "marks" }));
    return picture;
  }

  axes(box, name) {
    const across = [0, limits(this.pairs.map((p) => p.difference))[1]];
    const up = limits([0, ...this.pairs.map((p) => p.distance)]);
    const form = (value) => formatted(value);
    const right = linear(across, [box.left, box.right - 8]);
    return [
      { scale: right, at: ticks(...across, 6), form, title: `difference of ${name}` },
      {
        scale: linear(up, [box.bottom, box.top]),
        at: ticks(...up),
        form,
        title: `${data.distance} distance`,
      },
    ];
  }

  at = null;

  mark() {
    const { marks } = this;
    const [a, b] = state.pair;
    const same = ({ i, j }) => (i === a && j === b) || (i === b && j === a);
    const chosen = this.pairs.findIndex(same);
    if (chosen >= 0) marks.append(ring(...this.spots[chosen], 7, "var(--second)"));
    if (this.at !== null) marks.append(ring(...this.spots[this.at], 10, "var(--ink)"));
  }

  words() {
    if (this.at === null) return "";
    const { i, j, distance, difference } = this.pairs[this.at];
    const both = `distance ${formatted(distance)}, difference ${formatted(difference)}`;
    return `${names[i]} – ${names[j]}\n${both}`;
  }

  point(x, y) {
    this.at = nearest(this.spots, x, y, 14);
    return this.words();
  }

  step(down, right) {
    this.at = clamp((this.at ?? -1) + down + right, 0, this.spots.length - 1);
    return this.words();
  }

  pick() {
    if (this.at === null) return;
    const { i, j } = this.pairs[this.at];
    change({ pair: [i, j] });
  }
}

const currentTag = () => data.tags.find(({ name }) => name === data.correlations[state.tag].tag);

function drawCorrelation() {
  const found = data.correlations;
  if (!found.length) {
    byId("correlation").remove();
    document.querySelector('nav a[href="#correlation"]').remove();
    return;
  }
  new Scatter();
  const tell = () => {
    const { pearson, spearman, n_pairs: count, p_value: p } = found[state.tag];
    const numbers = `Pearson ${pearson.toFixed(2)}, Spearman ${spearman.toFixed(2)}`;
    byId("correlation-caption").textContent =
      `${numbers.replaceAll("-", "−")} over ${count} pairs; p = ${p.toPrecision(2)} by ` +
      "permutations of the datasets (Mantel test of Pearson's correlation, two-sided).";
  };
  tell();
  listen(["tag"], tell);
  const options = found.map(({ tag }, k) => [String(k), tag]);
  choices(byId("tag"), options, (k) => change({ tag: Number(k) }));
  if (found.length < 2) byId("tag").closest(".controls").remove();
}

// Every pair of datasets with this number, once, with the mean of both directions.
function pairsOf(values) {
  const pairs = [];
  for (let i = 0; i < names.length; i += 1) {
    for (let j = i + 1; j < names.length; j += 1) {
      if (values[i] === null || values[j] === null) continue;
      pairs.push({
        i,
        j,
        distance: (distances[i][j] + distances[j][i]) / 2,
        difference: Math.abs(values[i] - values[j]),
      });
    }
  }
  return pairs;
}

// Distance against the difference of a number, one dot for each pair.

function drawCorrelation() {
  const found = data.correlations;
  if (!found.length) {
    byId("correlation").remove();
    document.querySelector('nav a[href="#correlation"]').remove();
    return;
  }
  const container = byId("scatter");
  let spots = [];
  let cursor = -1;

  const tag = () => data.tags.find(({ name }) => name === found[state.tag].tag);

  function draw(width) {
    const height = Math.round(clamp(0.45 * width, 280, 420));
    const picture = canvas(width, height);
    const box = { left: 52, right: width - 14, top: 26, bottom: height - 44 };
    const pairs = pairsOf(tag().values);
    const across = [0, Math.max(...pairs.map((p) => p.difference), 0)];
    const up = [Math.min(0, ...pairs.map((p) => p.distance)), Math.max(...pairs.map((p) => p.distance))];
    const x = { scale: linear(across, [box.left, box.right - 8]), at: ticks(...across, 6), form: told, title: `difference of ${tag().name}` };
    const y = { scale: linear(up, [box.bottom, box.top]), at: ticks(...up), form: told, title: `${data.distance} distance` };
    axes(picture, box, x, y);
    spots = pairs.map((pair) => ({ ...pair, x: x.scale(pair.difference), y: y.scale(pair.distance) }));
    // One path however many pairs there are: a dot is a stroke of no length.
    const dots = svg("path", { d: spots.map((p) => `M${p.x.toFixed(1)} ${p.y.toFixed(1)}h0`).join(""), class: "dots" });
    if (spots.length > 1000) dots.style.strokeWidth = 3;
    picture.append(dots, svg("g", { class: "marks" }));
    place(container, picture);
    mark();
  }

  function mark() {
    const marks = container.querySelector(".marks");
    marks.replaceChildren();
    const ring = (spot, r, colour) => spot && marks.append(svg("circle", { cx: spot.x, cy: spot.y, r, fill: "none", stroke: colour, "stroke-width": 2 }));
    const [a, b] = state.pair;
    ring(spots.find((p) => (p.i === a && p.j === b) || (p.i === b && p.j === a)), 7, "var(--second)");
    ring(spots[cursor], 10, "var(--ink)");
  }

  const words = (p) => `${names[p.i]} – ${names[p.j]}\ndistance ${told(p.distance)}, difference ${told(p.difference)}`;

  function nearest(x, y) {
    let [best, least] = [-1, 14 ** 2];
    spots.forEach((p, at) => {
      const away = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (away < least) [best, least] = [at, away];
    });
    return best;
  }

  const pick = (at) => at >= 0 && change({ pair: [spots[at].i, spots[at].j] });
  pointer(container, (x, y) => (nearest(x, y) < 0 ? "" : words(spots[nearest(x, y)])), (x, y) => pick(nearest(x, y)));
  steered(container, "Distances against differences. Arrow keys go from pair to pair, Enter opens the pair above.", "correlation-caption", (key) => {
    if (key === "Enter" || key === " ") {
      pick(cursor);
      return true;
    }
    if (!STEPS[key]) return false;
    cursor = clamp(cursor + STEPS[key][0] + STEPS[key][1], 0, spots.length - 1);
    mark();
    announce(words(spots[cursor]));
    return true;
  });
  container.addEventListener("blur", () => {
    cursor = -1;
    mark();
  });
  const tell = () => {
    const { pearson, spearman, n_pairs: count } = found[state.tag];
    byId("correlation-caption").textContent = `Pearson ${pearson.toFixed(2)}, Spearman ${spearman.toFixed(2)} over ${count} pairs. Pairs share datasets, so they are not independent: this measures agreement, and no p-value belongs to it.`.replaceAll("-0", "−0");
  };
  tell();
  listen(["tag"], tell);
  listen(["tag"], responsive(container, draw));
  listen(["pair"], mark);
  choices(byId("tag"), found.map((f, k) => [String(k), f.tag]), (k) => change({ tag: Number(k) }));
  if (found.length < 2) byId("tag").closest(".controls").remove();
}

// Every pair of datasets that have the number, each once, with the mean of both directions.
function pairsOf(values) {
  const pairs = [];
  for (let i = 0; i < names.length; i += 1) {
    for (let j = i + 1; j < names.length; j += 1) {
      if (values[i] === null || values[j] === null) continue;
      pairs.push({ i, j, distance: (distances[i][j] + distances[j][i]) / 2, difference: Math.abs(values[i] - values[j]) });
    }
  }
  return pairs;
}

// Two datasets side by side: both spectra, what drives their distance, and the bound on it.

// Columns of a rectangular comparison are references, whose spectra stand behind the others.
const spectrumOf = (side, i) => (side === 0 || data.isSquare ? i : names.length + i);

// The squared differences of log(λ + γ), and their shares by decade of the spectrum.
function explain([a, b]) {
  const [first, second] = [spectra.logs[spectrumOf(0, a)], spectra.logs[spectrumOf(1, b)]];
  const differences = [...first].map((value, i) => value - second[i]);
  const squares = differences.map((difference) => difference ** 2);
  const total = squares.reduce((sum, square) => sum + square, 0);
  const decades = new Map();
  squares.forEach((square, i) => {
    const exponent = Math.ceil((first[i] + second[i]) / 2 / Math.LN10 - 1e-6);
    const decade = decades.get(exponent) ?? { exponent, count: 0, share: 0, from: i + 1 };
    decade.count += 1;
    decade.share += total ? square / total : 0;
    decade.to = i + 1;
    decades.set(exponent, decade);
  });
  return { first, second, differences, squares, total, decades: [...decades.values()].sort((p, q) => q.exponent - p.exponent) };
}

function drawPair() {
  if (names.length === 1 && data.isSquare) {
    absent("pair", "A pair needs two datasets.");
    return;
  }
  const [first, second] = [byId("first"), byId("second")];
  choices(first, names.map((name, i) => [String(i), name]), (i) => change({ pair: [Number(i), state.pair[1]] }));
  choices(second, references.map((name, j) => [String(j), name]), (j) => change({ pair: [state.pair[0], Number(j)] }));
  const update = () => {
    [first.value, second.value] = state.pair.map(String);
    byId("pair-words").replaceChildren(...pairWords());
  };
  update();
  listen(["pair"], update);
  if (!spectra) {
    byId("pair-charts").append(html("p", { class: "note" }, `The distance ${data.distance} does not come from spectra, so there is nothing to take apart.`));
    byId("pair-table").remove();
    return;
  }
  const charts = [["Both spectra", drawBoth], ["Which eigenvalues differ", drawDifferences], ["What each decade explains", drawDecades]];
  for (const [title, draw] of charts) {
    const container = html("div", { class: "chart" });
    const figure = html("figure", {}, html("h3", {}, title), container);
    byId("pair-charts").append(figure);
    listen(["pair"], responsive(container, (width) => place(container, draw(width))));
  }
}

function pairWords() {
  const [a, b] = state.pair;
  const distance = distances[a][b];
  const bound = bounds[a][b];
  if (a === b && data.isSquare) return [named(names[a]), " with itself: choose another dataset."];
  const words = [named(names[a]), " and ", named(references[b]), ` are ${told(distance)} apart`];
  if (Number.isFinite(bound)) words.push(`, exact to ${told(bound, 2)}`);
  words.push(rankWords(distance), ".");
  return spectra ? [...words, ...drivers()] : words;
}

function rankWords(distance) {
  let [closer, count] = [0, 0];
  distances.forEach((row, i) =>
    row.forEach((other, j) => {
      if (data.isSquare && j <= i) return;
      count += 1;
      if (other < distance) closer += 1;
    }),
  );
  return count > 2 ? `: ${closer} of ${count} pairs are closer` : "";
}

function drivers() {
  const { squares, total, decades } = explain(state.pair);
  if (!total) return [" Their spectra are equal."];
  const [start, end] = shortestHalf(squares, total);
  const most = decades.reduce((best, decade) => (decade.share > best.share ? decade : best));
  const what = data.isLes ? "its square" : "their squared log-spectral difference (LES; this distance weighs it differently)";
  const range = start === end ? `eigenvalue ${start}` : `eigenvalues ${start} to ${end}`;
  return [` Half of ${what} comes from ${range}; the decade ${decadeName(most.exponent)} explains ${percent(most.share)}.`];
}

// The fewest neighbouring eigenvalues that hold half of the sum.
function shortestHalf(squares, total) {
  let best = [1, squares.length];
  let sum = 0;
  for (let start = 0, end = 0; start < squares.length; start += 1) {
    while (end < squares.length && sum < total / 2) sum += squares[end++];
    if (sum < total / 2) break;
    if (end - start < best[1] - best[0] + 1) best = [start + 1, end];
    sum -= squares[start];
  }
  return best;
}

const decadeName = (exponent) => `${power(exponent - 1)} to ${power(exponent)}`;

function drawBoth(width) {
  const [a, b] = state.pair;
  const { first, second } = explain(state.pair);
  const height = 300;
  const picture = canvas(width, height, `Spectra of ${names[a]} and ${references[b]}; the table below has the numbers.`);
  const box = { left: 48, right: width - 14, top: 26, bottom: height - 44 };
  const scales = spectralScales([first, second], box);
  axes(picture, box, scales.x, scales.y);
  gammaLine(picture, box, scales.y);
  [[first, "var(--first)", spectrumOf(0, a), null], [second, "var(--second)", spectrumOf(1, b), "6 3"]].forEach(([values, colour, i, dashes]) => {
    picture.append(errorBand(i, scales, colour));
    const points = [...values].map((value, j) => [scales.x.scale(j + 1), scales.y.scale(value)]);
    picture.append(svg("path", { d: path(points), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes }));
  });
  return picture;
}

function drawDifferences(width) {
  const [a, b] = state.pair;
  const { differences } = explain(state.pair);
  const height = 300;
  const picture = canvas(width, height, `Differences of log eigenvalues of ${names[a]} and ${references[b]}; the table below has the numbers.`);
  const box = { left: 48, right: width - 14, top: 26, bottom: height - 44 };
  const low = Math.min(0, ...differences);
  const high = Math.max(0, ...differences);
  const y = { scale: linear([low, high === low ? 1 : high], [box.bottom, box.top]), at: ticks(low, high === low ? 1 : high), form: (v) => told(v), title: "log(λᵢ + γ), first − second" };
  const x = countAxis(spectra.k, box.left, box.right);
  axes(picture, box, x, y);
  const thick = clamp((box.right - box.left) / spectra.k - 0.6, 0.8, 14);
  for (const [sign, colour] of [[1, "var(--first)"], [-1, "var(--second)"]]) {
    const d = differences.map((v, i) => (v * sign > 0 ? `M${x.scale(i + 1).toFixed(1)} ${y.scale(0).toFixed(1)}V${y.scale(v).toFixed(1)}` : "")).join("");
    picture.append(svg("path", { d, fill: "none", stroke: colour, "stroke-width": thick }));
  }
  picture.append(line(box.left, y.scale(0), box.right, y.scale(0), "axis"));
  return picture;
}

function drawDecades(width) {
  const { decades } = explain(state.pair);
  const row = 27;
  const height = decades.length * row + 30;
  const picture = canvas(width, height, `Shares by decade: ${decades.map((d) => `${decadeName(d.exponent)} ${percent(d.share)}`).join(", ")}.`);
  const [left, right] = [92, width - 112];
  const head = { class: "quiet", "text-anchor": "end" };
  picture.append(text(left - 10, 14, "eigenvalues", head), text(right + 42, 14, "share", head), text(width - 6, 14, "count", head));
  decades.forEach(({ exponent, count, share }, i) => {
    const y = i * row + 26;
    const bar = { x: left, y, height: 18, rx: 2 };
    picture.append(text(left - 10, y + 14, decadeName(exponent), { "text-anchor": "end" }));
    picture.append(svg("rect", { ...bar, width: right - left, fill: "var(--rule)" }));
    picture.append(svg("rect", { ...bar, width: Math.max((right - left) * share, share > 0 ? 1 : 0), fill: "var(--accent)" }));
    picture.append(text(right + 42, y + 14, percent(share), { "text-anchor": "end" }));
    picture.append(text(width - 6, y + 14, count, head));
  });
  return picture;
}

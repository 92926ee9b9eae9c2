// One pair of datasets: both spectra, their differences, and the error bound.

// Columns of a rectangular comparison are references, whose spectra come last.
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
    const decade = decades.get(exponent) ?? { exponent, count: 0, share: 0 };
    decade.count += 1;
    decade.share += total ? square / total : 0;
    decades.set(exponent, decade);
  });
  return {
    first,
    second,
    differences,
    squares,
    total,
    decades: [...decades.values()].sort((p, q) => q.exponent - p.exponent),
  };
}

function drawPair() {
  if (names.length === 1 && data.isSquare) {
    replaceSection("pair", "A pair needs two datasets.");
    return;
  }
  const [first, second] = [byId("first"), byId("second")];
  const numbered = (list) => list.map((name, i) => [String(i), name]);
  choices(first, numbered(names), (i) => change({ pair: [Number(i), state.pair[1]] }));
  choices(second, numbered(references), (j) => change({ pair: [state.pair[0], Number(j)] }));
  const update = () => {
    [first.value, second.value] = state.pair.map(String);
    byId("pair-words").replaceChildren(...pairWords());
    drawWhy();
  };
  update();
  listen(["pair"], update);
  if (spectra) {
    pairChart("Both spectra", drawBoth);
    pairChart("Differences of eigenvalues", drawDifferences);
    pairChart("Share of each decade", drawDecades);
    return;
  }
  const reason = `The distance ${data.distance} is not computed from spectra, so it cannot be decomposed.`;
  byId("pair-charts").append(html("p", { class: "note" }, reason));
  byId("pair-table").remove();
}

function pairChart(title, draw) {
  const container = html("div", { class: "chart" });
  byId("pair-charts").append(html("figure", {}, html("h3", {}, title), container));
  const redraw = responsive(container, (width) => place(container, draw(width)));
  listen(["pair"], redraw);
}

// The corrected distance of a pair, its interval and p-value.
function sureness(a, b) {
  const ends = [inference.low[a][b], inference.high[a][b]].map((end) => formatted(end, 3));
  const corrected = `corrected ${formatted(inference.corrected[a][b], 3)}`;
  return `${corrected} (95 %: ${ends.join(" to ")}), p = ${formatted(inference.p[a][b], 2)}`;
}

function pairWords() {
  const [a, b] = state.pair;
  const distance = distances[a][b];
  const bound = bounds[a][b];
  if (a === b && data.isSquare) return [named(names[a]), " with itself: choose another dataset."];
  const words = ["The distance between ", named(names[a]), " and ", named(references[b])];
  words.push(` is ${formatted(distance)}`);
  if (Number.isFinite(bound)) words.push(`, accurate to within ${formatted(bound, 2)}`);
  words.push(rankWords(distance), ".");
  if (inference) {
    const apart = inference.holm[a][b] <= inference.level;
    const verdict = apart ? "They differ by more than" : "They are not told apart from";
    words.push(` ${verdict} sampling noise: ${sureness(a, b)}, adjusted `);
    words.push(`${formatted(inference.holm[a][b], 2)} (Holm); noise floors `);
    words.push(`${formatted(inference.floor[a], 3)} and `);
    words.push(`${formatted(inference.referenceFloor[b], 3)}.`);
  }
  return spectra ? [...words, ...drivers()] : words;
}

const isSymmetric =
  data.isSquare && distances.every((row, i) => row.every((x, j) => x === distances[j][i]));

function rankWords(distance) {
  const others = distances.flatMap((row, i) =>
    [...row].filter((_, j) => (isSymmetric ? j > i : !data.isSquare || j !== i)),
  );
  const closer = others.filter((other) => other < distance).length;
  return others.length > 2 ? `: ${closer} of ${others.length} pairs are closer` : "";
}

function drivers() {
  const { squares, total, decades } = explain(state.pair);
  if (!total) return [" Their spectra are equal."];
  const [start, end] = shortestHalf(squares, total);
  const range = start === end ? `eigenvalue ${start}` : `eigenvalues ${start} to ${end}`;
  const most = decades.reduce((best, decade) => (decade.share > best.share ? decade : best));
  const decade = `the decade ${decadeName(most.exponent)} explains ${percent(most.share)}`;
  return [` Half of ${whatIsShared()} comes from ${range}; ${decade}.`];
}

function whatIsShared() {
  if (!data.isLes) return "their squared LES distance (this distance weights spectra differently)";
  return data.isSquared ? "it" : "its square";
}

// The shortest range of eigenvalues that accounts for half of the sum.
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

// A box with an axis for the indices 1 to K; `up` makes the vertical axis.
function frame(width, label, up) {
  const [a, b] = state.pair;
  const both = `${names[a]} and ${references[b]}`;
  const height = 300;
  const picture = canvas(width, height, `${label} of ${both}; the table below has the numbers.`);
  const box = { left: 48, right: width - 14, top: 26, bottom: height - 44 };
  const scales = { x: countAxis(spectra.k, box.left, box.right), y: up(box) };
  axes(picture, box, scales.x, scales.y);
  return { picture, box, scales };
}

function drawBoth(width) {
  const { first, second } = explain(state.pair);
  const up = (box) => spectralScales([first, second], box).y;
  const { picture, box, scales } = frame(width, "Spectra", up);
  gammaLine(picture, box, scales.y);
  ["var(--first)", "var(--second)"].forEach((colour, side) => {
    const i = spectrumOf(side, state.pair[side]);
    const dashes = side ? "6 3" : null;
    const look = { stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes };
    picture.append(errorBand(i, scales, colour), spectralLine(i, scales, look));
  });
  return picture;
}

function drawDifferences(width) {
  const { differences } = explain(state.pair);
  let [low, high] = limits([0, ...differences]);
  if (low === high) high = 1;
  const { picture, box, scales } = frame(width, "Differences of log eigenvalues", (box) => ({
    scale: linear([low, high], [box.bottom, box.top]),
    at: ticks(low, high),
    form: (value) => formatted(value),
    title: "log(λᵢ + γ), first − second",
  }));
  const [x, y] = [scales.x.scale, scales.y.scale];
  const thick = clamp((box.right - box.left) / spectra.k - 0.6, 0.8, 14);
  const bar = (value, i) => `M${x(i + 1).toFixed(1)} ${y(0).toFixed(1)}V${y(value).toFixed(1)}`;
  const bars = (sign) => differences.map((v, i) => (v * sign > 0 ? bar(v, i) : "")).join("");
  for (const [sign, stroke] of Object.entries({ 1: "var(--first)", "-1": "var(--second)" })) {
    picture.append(svg("path", { d: bars(sign), fill: "none", stroke, "stroke-width": thick }));
  }
  picture.append(line(box.left, y(0), box.right, y(0), "axis"));
  return picture;
}

function drawDecades(width) {
  const { decades } = explain(state.pair);
  const shares = decades.map((d) => `${decadeName(d.exponent)} ${percent(d.share)}`).join(", ");
  const picture = canvas(width, decades.length * 27 + 30, `Shares by decade: ${shares}.`);
  const [left, right] = [92, width - 112];
  const end = { "text-anchor": "end" };
  const quiet = { ...end, class: "quiet" };
  picture.append(
    text(left - 10, 14, "eigenvalues", quiet),
    text(right + 42, 14, "share", quiet),
    text(width - 6, 14, "count", quiet),
  );
  decades.forEach(({ exponent, count, share }, i) => {
    const y = i * 27 + 26;
    const bar = { x: left, y, height: 18, rx: 2 };
    const long = share > 0 ? Math.max((right - left) * share, 1) : 0;
    picture.append(
      text(left - 10, y + 14, decadeName(exponent), end),
      svg("rect", { ...bar, width: right - left, fill: "var(--rule)" }),
      svg("rect", { ...bar, width: long, fill: "var(--accent)" }),
      text(right + 42, y + 14, percent(share), end),
      text(width - 6, y + 14, count, quiet),
    );
  });
  return picture;
}

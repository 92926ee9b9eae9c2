// All spectra on one logarithmic axis, with γ and the band of their error.

function drawSpectra() {
  if (!spectra) {
    absent("spectra", `The distance ${data.distance} does not come from spectra, so there are none to show.`);
    return;
  }
  const container = byId("lines");
  const { logs, errors, k } = spectra;
  const count = spectra.names.length;
  const cursor = { row: 0, column: 0 };
  let scales = null;

  function draw(width) {
    const height = Math.round(clamp(0.42 * width, 280, 460));
    const picture = canvas(width, height);
    const own = count <= 16 ? clamp(16 + 6.8 * Math.max(...spectra.names.map((s) => [...shortened(s, 14)].length)), 30, 0.25 * width) : 14;
    const box = { left: 48, right: width - own, top: 26, bottom: height - 44 };
    scales = spectralScales(logs, box);
    axes(picture, box, scales.x, scales.y);
    gammaLine(picture, box, scales.y);
    for (let i = 0; i < count; i += 1) picture.append(...curve(i));
    if (count <= 16) endLabels(picture, box);
    picture.append(svg("g", { class: "marks" }));
    place(container, picture);
  }

  // References of a rectangular comparison are dashed.
  function curve(i) {
    const colour = i < names.length ? look(i).fill : "var(--quiet)";
    const points = [...logs[i]].map((value, j) => [scales.x.scale(j + 1), scales.y.scale(value)]);
    const dashes = i < names.length ? null : "5 3";
    const stroke = svg("path", { d: path(points), fill: "none", stroke: colour, "stroke-width": count > 20 ? 1.1 : 1.8, "stroke-dasharray": dashes, opacity: count > 40 ? 0.6 : 0.95 });
    return [errorBand(i, scales, colour), stroke];
  }

  function endLabels(picture, box) {
    const ends = spectra.names.map((name, i) => ({ name, i, y: scales.y.scale(logs[i][k - 1]) }));
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((end, at) => {
      if (at && end.y < ends[at - 1].y + 14) end.y = ends[at - 1].y + 14;
    });
    const over = Math.max(0, ends.at(-1).y - box.bottom);
    ends.forEach(({ name, i, y }) => {
      const from = [box.right, scales.y.scale(logs[i][k - 1])];
      picture.append(svg("path", { d: path([from, [box.right + 8, y - over]]), class: "link" }));
      picture.append(text(box.right + 11, y - over + 4, shortened(name, 14)));
    });
  }

  function mark(i, column) {
    const marks = container.querySelector(".marks");
    marks.replaceChildren();
    if (i < 0) return;
    const points = [...logs[i]].map((value, j) => [scales.x.scale(j + 1), scales.y.scale(value)]);
    marks.append(svg("path", { d: path(points), class: "cursor" }));
    const [x, y] = points[column];
    marks.append(svg("circle", { cx: x, cy: y, r: 4, fill: "var(--ink)" }));
  }

  function words(i, column) {
    const error = errors[i][column];
    const about = Number.isFinite(error) ? `error of its logarithm ≤ ${told(error, 2)}` : "no error bound";
    return `${spectra.names[i]}\nλ${column + 1} = ${told(spectra.eigenvalues[i][column])}\n${about}`;
  }

  pointer(container, (x, y) => {
    if (!scales) return "";
    const column = Math.round(linear([scales.x.scale(1), scales.x.scale(Math.max(k, 2))], [0, Math.max(k, 2) - 1])(x));
    if (column < 0 || column >= k) {
      mark(-1, 0);
      return "";
    }
    let best = 0;
    const away = (i) => Math.abs(scales.y.scale(logs[i][column]) - y);
    for (let i = 1; i < count; i += 1) if (away(i) < away(best)) best = i;
    const near = away(best) < 30;
    mark(near ? best : -1, column);
    return near ? words(best, column) : "";
  });
  steered(container, "Spectra. Left and right go along a spectrum, up and down to another dataset.", "spectra-caption", (key) => {
    if (!STEPS[key]) return false;
    cursor.row = clamp(cursor.row + STEPS[key][0], 0, count - 1);
    cursor.column = clamp(cursor.column + STEPS[key][1], 0, k - 1);
    mark(cursor.row, cursor.column);
    announce(words(cursor.row, cursor.column));
    return true;
  });
  container.addEventListener("blur", () => mark(-1, 0));
  listen(["colour", "theme"], responsive(container, draw));
  const explainColours = () => byId("spectra-legend").replaceChildren(...legend(data.tags[Number(state.colour)]));
  explainColours();
  listen(["colour", "theme"], explainColours);
  const dashed = data.isSquare ? "" : " References are dashed grey.";
  byId("spectra-caption").textContent = `The ${k} largest eigenvalues of each dataset.${dashed} What lies below the dashed γ line counts as noise. Bands show the bound on the error; where none is seen it is thinner than the line.`;
}

function spectralScales(rows, box) {
  let [low, high] = [spectra.gamma > 0 ? Math.log(spectra.gamma) : Infinity, -Infinity];
  for (const row of rows) {
    low = Math.min(low, row[row.length - 1]);
    high = Math.max(high, row[0]);
  }
  return { x: countAxis(spectra.k, box.left, box.right), y: spectralAxis(low, high, box.bottom, box.top) };
}

function gammaLine(picture, box, y) {
  if (!(spectra.gamma > 0)) return;
  const height = y.scale(Math.log(spectra.gamma));
  picture.append(line(box.left, height, box.right, height, "gamma"));
  picture.append(text(box.left + 6, height - 6, `γ = ${told(spectra.gamma)}`, { class: "quiet halo" }));
}

function errorBand(i, { x, y }, colour) {
  const [lowest, highest] = [y.at.at(-1) - Math.LN10, y.at[0] + Math.LN10];
  const errors = [...spectra.errors[i]];
  if (!errors.some((error) => error > 1e-3 && Number.isFinite(error))) return svg("g");
  const edge = (sign) => errors.map((error, j) => [x.scale(j + 1), y.scale(clamp(spectra.logs[i][j] + sign * (Number.isFinite(error) ? error : 99), lowest, highest))]);
  return svg("path", { d: `${path([...edge(1), ...edge(-1).reverse()])}Z`, fill: colour, opacity: 0.18 });
}

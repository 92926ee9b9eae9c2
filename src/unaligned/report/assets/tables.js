// The tables behind the charts, and the downloads.

// Cells are text or numbers; numbers are right-aligned. Built when first opened: some are long.
function table(caption, head, rows) {
  const cell = (value, first) => {
    const isNumber = typeof value === "number";
    const tag = first ? "th" : "td";
    return html(
      tag,
      { class: isNumber ? "number" : null, scope: first ? "row" : null },
      isNumber ? formatted(value) : (value ?? "–"),
    );
  };
  const numeric = head.map(
    (_, k) => rows.length > 0 && rows.some((row) => typeof row[k] === "number"),
  );
  const titles = head.map((title, k) =>
    html("th", { scope: "col", class: numeric[k] ? "number" : null }, title),
  );
  const body = rows.map((row) => html("tr", {}, ...row.map((value, k) => cell(value, k === 0))));
  const whole = html(
    "table",
    {},
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...titles)),
    html("tbody", {}, ...body),
  );
  return html(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    whole,
  );
}

function behind(id, make, keys = []) {
  const details = byId(id);
  if (!details) return;
  const refresh = () => {
    details.querySelector(".scroll")?.remove();
    if (details.open) details.append(make());
  };
  details.addEventListener("toggle", refresh);
  if (keys.length) listen(keys, refresh);
}

function drawTables() {
  behind("heatmap-table", () =>
    table(
      `${data.distance} distances`,
      ["", ...references],
      names.map((name, i) => [name, ...distances[i]]),
    ),
  );
  behind("map-table", mapTable, ["method"]);
  behind("spectra-table", spectraTable);
  behind("pair-table", pairTable, ["pair"]);
  behind("correlation-table", correlationTable, ["tag"]);
  byId("datasets").append(datasetsTable());
  byId("copy").addEventListener("click", copyTable);
  const stem = "unaligned";
  byId("matrix-csv").addEventListener("click", () =>
    download(`${stem}-distances.csv`, "text/csv", matrixText(",")),
  );
  byId("pairs-csv").addEventListener("click", () =>
    download(`${stem}-pairs.csv`, "text/csv", pairsText()),
  );
  byId("json").addEventListener("click", () =>
    download(`${stem}.json`, "application/json", everything()),
  );
}

function mapTable() {
  const { method, places } = currentMap();
  return table(
    `Coordinates (${METHODS[method]})`,
    ["dataset", "first", "second"],
    names.map((name, i) => [name, ...places[i]]),
  );
}

function spectraTable() {
  const { k } = spectra;
  const shown = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter((i) => i < k).concat(k);
  const rows = spectra.names.map((name, i) => [
    name,
    ...shown.map((at) => spectra.eigenvalues[i][at - 1]),
  ]);
  return table(
    "Eigenvalues (all of them are in the JSON)",
    ["dataset", ...shown.map((i) => `λ${i}`)],
    rows,
  );
}

function pairTable() {
  const [a, b] = state.pair;
  const { differences, squares, total } = explain(state.pair);
  const [first, second] = [
    spectra.eigenvalues[spectrumOf(0, a)],
    spectra.eigenvalues[spectrumOf(1, b)],
  ];
  const rows = differences.map((difference, i) => [
    String(i + 1),
    first[i],
    second[i],
    difference,
    total ? (100 * squares[i]) / total : 0,
  ]);
  return table(
    `${names[a]} and ${references[b]}`,
    ["i", names[a], references[b], "difference of logs", "% of the square"],
    rows,
  );
}

function correlationTable() {
  const { tag } = data.correlations[state.tag];
  const { values } = data.tags.find(({ name }) => name === tag);
  const pairs = pairsOf(values).sort((p, q) => p.difference - q.difference);
  return table(
    `Distance and difference of ${tag}`,
    ["first", "second", "difference", "distance"],
    pairs.map((p) => [names[p.i], names[p.j], p.difference, p.distance]),
  );
}

function nearestTo(i) {
  let best = -1;
  distances[i].forEach((distance, j) => {
    if (data.isSquare && j === i) return;
    if (best < 0 || distance < distances[i][best]) best = j;
  });
  return best;
}

function datasetsTable() {
  const head = ["dataset", ...data.tags.map((tag) => tag.name)];
  if (spectra) head.push("samples", "features", "σ²", "smallest λ", "solver", "error ≤", "bound");
  if (inference) head.push("noise floor");
  head.push(data.isSquare ? "nearest" : "nearest reference", "its distance");
  const rows = names.map((name, i) => {
    const row = [name, ...data.tags.map((tag) => tag.values[i])];
    if (spectra) {
      const s = spectra.datasets[i];
      row.push(
        s.samples.toLocaleString("en"),
        s.features.toLocaleString("en"),
        s.sigmaSquared ?? "–",
        spectra.eigenvalues[i][spectra.k - 1],
        s.solver,
        s.bound ?? "unknown",
        s.kind,
      );
    }
    if (inference) row.push(inference.floor[i]);
    const near = nearestTo(i);
    return [...row, near < 0 ? "–" : references[near], near < 0 ? "–" : distances[i][near]];
  });
  const made = table(
    data.isSquare ? "The datasets" : "The datasets (the references are in the JSON)",
    head,
    rows,
  );
  if (spectra) {
    for (const column of [head.indexOf("samples"), head.indexOf("samples") + 1]) {
      made.querySelectorAll("tr").forEach((row) => row.children[column].classList.add("number"));
    }
  }
  return made;
}

// Quoted where the cell contains a comma, a quote or a newline.
function quoted(value, separator) {
  const words = String(value);
  return words.includes(separator) || /["\n\r\t]/.test(words)
    ? `"${words.replaceAll('"', '""')}"`
    : words;
}

const row = (cells, separator) => cells.map((cell) => quoted(cell, separator)).join(separator);

function matrixText(separator) {
  const rows = names.map((name, i) => row([name, ...distances[i]], separator));
  return [row(["", ...references], separator), ...rows, ""].join("\n");
}

function pairsText() {
  const sure = ["corrected", "low", "high", "p", "holm"];
  const head = ["first", "second", "distance", "error_bound", ...(inference ? sure : [])];
  const rows = [row(head, ",")];
  names.forEach((name, i) =>
    references.forEach((other, j) => {
      const twice = data.isSquare && j <= i && distances[i][j] === distances[j][i];
      if (twice || (data.isSquare && i === j)) return;
      const cells = [name, other, distances[i][j], Number.isNaN(bounds[i][j]) ? "" : bounds[i][j]];
      if (inference) cells.push(...sure.map((key) => inference[key][i][j]));
      rows.push(row(cells, ","));
    }),
  );
  return [...rows, ""].join("\n");
}

function everything() {
  const plain = (rows) =>
    rows.map((values) => [...values].map((x) => (Number.isFinite(x) ? x : null)));
  const whole = {
    title: data.title,
    distance: data.distance,
    names,
    references: data.isSquare ? undefined : references,
    distances: plain(distances),
    error_bounds: plain(bounds),
    inference: inference && {
      corrected: plain(inference.corrected),
      low: plain(inference.low),
      high: plain(inference.high),
      p_values: plain(inference.p),
      p_holm: plain(inference.holm),
      noise_floor: inference.floor,
      reference_noise_floor: data.isSquare ? undefined : inference.referenceFloor,
      block_size: inference.blockSize,
    },
    tags: Object.fromEntries(data.tags.map((tag) => [tag.name, tag.values])),
    groups: data.groups,
    linkage: data.tree,
    maps: Object.fromEntries(data.maps.map((map) => [map.method, map.places])),
    correlations: data.correlations,
    spectra: spectra && {
      names: spectra.names,
      gamma: spectra.gamma,
      eigenvalues: plain(spectra.eigenvalues),
      log_error_bounds: plain(spectra.errors),
      datasets: spectra.datasets,
    },
    recipe: data.recipe,
  };
  return JSON.stringify(whole, null, 1);
}

function download(file, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = html("a", { href: address, download: file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Tab-separated, for spreadsheets.
async function copyTable() {
  const words = matrixText("\t");
  let done = true;
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    const area = html("textarea", { "aria-hidden": "true" });
    area.value = words;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  byId("copied").textContent = done
    ? "Copied; paste it into a spreadsheet."
    : "Copying is not allowed here; use the CSV.";
}

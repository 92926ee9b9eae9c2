// The matrix of distances with its tree; one stop of the tab key, arrows go from cell to cell.

function drawHeatmap() {
  if (names.length * references.length === 1 && data.isSquare) {
    absent("distances", "One dataset has no distances.");
    return;
  }
  const container = byId("heatmap");
  const n = names.length;
  const m = references.length;
  const values = distances.flatMap((row) => [...row]).filter(Number.isFinite);
  const low = values.length ? Math.min(...minmax(values)) : 0;
  const high = values.length ? Math.max(...minmax(values)) : 1;
  const cursor = { row: 0, column: Math.min(1, m - 1) };
  let layout = null;

  function orders() {
    if (!data.isSquare) return [byTag(n), references.map((_, j) => j)];
    const order = state.order === "tree" ? data.order : byTag(n);
    return [order, order];
  }

  function byTag(count) {
    const given = Array.from({ length: count }, (_, i) => i);
    const tag = data.tags[Number(state.order)];
    if (!tag || state.order === "given" || state.order === "tree") return given;
    const rank = (i) => (tag.numeric ? tag.values[i] ?? Infinity : tag.groups.indexOf(tag.values[i] ?? "") + 1 || Infinity);
    return given.sort((a, b) => rank(a) - rank(b) || a - b);
  }

  function measure(width) {
    const longest = Math.max(...names.map((name) => [...shortened(name)].length));
    const label = Math.min(10 + 6.8 * longest, 0.3 * width);
    const strip = state.colour === "none" ? 0 : 12;
    const roomy = (width - label - strip - 4) / m;
    const cell = clamp(roomy, 1, Math.max(36, Math.min(64, 420 / m)));
    const labelled = cell >= 9;
    const left = (labelled ? label : 2) + strip;
    const size = labelled ? cell : Math.min((width - left - 4) / m, 600 / Math.max(n, m));
    const tree = data.tree.length && state.order === "tree" ? clamp(width / 7, 48, 84) : 0;
    const widest = 6.6 * Math.max(...references.map((name) => [...shortened(name)].length));
    const upright = widest < size - 4;
    const foot = labelled ? (upright ? 20 : Math.min(14 + 0.75 * widest, 130)) : 4;
    return { left, top: tree + 4, tree, size, labelled, upright, foot, strip };
  }

  function draw(width) {
    const [rows, columns] = orders();
    layout = { ...measure(width), rows, columns };
    const { left, top, size, foot } = layout;
    const picture = canvas(left + size * m + 4, top + size * n + foot);
    const box = { x: left, y: top, width: size * m, height: size * n };
    picture.append(svg("image", { ...box, preserveAspectRatio: "none", href: pixels(rows, columns) }));
    if (layout.tree) drawTree(picture);
    if (layout.strip) drawStrip(picture);
    if (layout.labelled) drawLabels(picture);
    if (m <= 12 && size >= 34) drawNumbers(picture);
    picture.append(svg("g", { id: "marks" }));
    place(container, picture);
    mark();
  }

  function minmax(list) {
    return list.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
  }

  const share = (value) => clamp((value - low) / (high - low || 1), 0, 1);

  // One pixel per cell, enlarged without smoothing: 200 × 200 costs no more than 5 × 5.
  function pixels(rows, columns) {
    const sheet = html("canvas", { width: m, height: n });
    const context = sheet.getContext("2d");
    rows.forEach((i, y) =>
      columns.forEach((j, x) => {
        const value = distances[i][j];
        context.fillStyle = Number.isFinite(value) ? shade(share(value)) : "#999999";
        context.fillRect(x, y, 1, 1);
      }),
    );
    return sheet.toDataURL();
  }

  function drawTree(picture) {
    const { left, top, tree, size } = layout;
    const highest = Math.max(...data.tree.map((merge) => merge[2])) || 1;
    const height = linear([0, highest], [top - 5, top - tree + 2]);
    const nodes = names.map((_, i) => ({ x: left + size * (data.order.indexOf(i) + 0.5), y: height(0) }));
    let all = "";
    for (const [a, b, distance] of data.tree) {
      const y = height(distance);
      all += `M${nodes[a].x} ${nodes[a].y}V${y}H${nodes[b].x}V${nodes[b].y}`;
      nodes.push({ x: (nodes[a].x + nodes[b].x) / 2, y });
    }
    picture.append(svg("path", { d: all, class: "tree" }));
    if (!data.groups) return;
    data.order.slice(1).forEach((i, k) => {
      if (data.groups[i] === data.groups[data.order[k]]) return;
      const at = size * (k + 1);
      picture.append(line(left + at, top, left + at, top + size * m, "parting"));
      picture.append(line(left, top + at, left + size * m, top + at, "parting"));
    });
  }

  function drawStrip(picture) {
    const { left, top, size, rows } = layout;
    rows.forEach((i, y) => {
      const box = { x: left - 10, y: top + y * size, width: 7, height: size + 0.3 };
      picture.append(svg("rect", { ...box, fill: look(i).fill }));
    });
  }

  function drawLabels(picture) {
    const { left, top, size, strip, upright, rows, columns } = layout;
    const small = { "font-size": `${clamp(size * 0.8, 8, 12)}px` };
    rows.forEach((i, y) => {
      const at = { "text-anchor": "end", "dominant-baseline": "central" };
      const label = text(left - strip - 6, top + (y + 0.5) * size, shortened(names[i]), at);
      label.style.fontSize = small["font-size"];
      picture.append(label);
    });
    columns.forEach((j, x) => {
      const [across, down] = [left + (x + 0.5) * size, top + n * size + 13];
      const turn = upright ? {} : { transform: `rotate(-45 ${across} ${down - 4})` };
      const label = text(across, down, shortened(references[j]), { "text-anchor": upright ? "middle" : "end", ...turn });
      label.style.fontSize = small["font-size"];
      picture.append(label);
    });
  }

  function drawNumbers(picture) {
    const { left, top, size, rows, columns } = layout;
    const decimals = clamp(2 - Math.floor(Math.log10(Math.max(Math.abs(high), Math.abs(low), 1e-300))), 0, 6);
    rows.forEach((i, y) =>
      columns.forEach((j, x) => {
        const value = distances[i][j];
        const words = value === 0 ? "0" : decimals < 5 ? value.toFixed(decimals).replace("-", "−") : told(value, 2);
        const label = text(left + (x + 0.5) * size, top + (y + 0.5) * size, words, { "text-anchor": "middle", "dominant-baseline": "central" });
        label.style.fill = share(value) > 0.55 ? "#111111" : "#ffffff";
        label.style.fontSize = `${clamp(size / 4, 9, 12)}px`;
        picture.append(label);
      }),
    );
  }

  // The chosen pair is dashed, at both of its places; the cursor of the keyboard is solid.
  function mark(at = null) {
    const marks = container.querySelector("#marks");
    if (!marks) return;
    const { left, top, size, rows, columns } = layout;
    marks.replaceChildren();
    const frame = (i, j, kind) => {
      const box = { x: left + columns.indexOf(j) * size, y: top + rows.indexOf(i) * size, width: size, height: size };
      marks.append(svg("rect", { ...box, class: kind }));
    };
    const [a, b] = state.pair;
    frame(a, b, "chosen");
    if (data.isSquare) frame(b, a, "chosen");
    if (at) frame(rows[at.row], columns[at.column], "cursor");
  }

  function words(row, column) {
    const [i, j] = [layout.rows[row], layout.columns[column]];
    const bound = bounds[i][j];
    const about = Number.isFinite(bound) ? ` ± ${told(bound, 2)}` : "";
    return `${names[i]} – ${references[j]}\n${told(distances[i][j])}${i === j && data.isSquare ? "" : about}`;
  }

  function cellAt(x, y) {
    if (!layout) return null;
    const column = Math.floor((x - layout.left) / layout.size);
    const row = Math.floor((y - layout.top) / layout.size);
    return row >= 0 && row < n && column >= 0 && column < m ? { row, column } : null;
  }

  function pick({ row, column }) {
    change({ pair: [layout.rows[row], layout.columns[column]] });
  }

  pointer(
    container,
    (x, y) => {
      const cell = cellAt(x, y);
      mark(cell);
      return cell ? words(cell.row, cell.column) : "";
    },
    (x, y) => {
      const cell = cellAt(x, y);
      if (cell) pick(cell);
    },
  );
  steered(container, "Heatmap of distances. Arrow keys move from cell to cell, Enter opens the pair below.", "heatmap-caption", (key) => {
    if (key === "Enter" || key === " ") {
      pick(cursor);
      return true;
    }
    if (!STEPS[key]) return false;
    cursor.row = clamp(cursor.row + STEPS[key][0], 0, n - 1);
    cursor.column = clamp(cursor.column + STEPS[key][1], 0, m - 1);
    mark(cursor);
    announce(words(cursor.row, cursor.column));
    return true;
  });
  container.addEventListener("blur", () => mark());
  const redraw = responsive(container, draw);
  listen(["order", "colour", "theme"], redraw);
  listen(["pair"], () => mark());

  const caption = byId("heatmap-caption");
  caption.append(gradient(told(low, 3), told(high, 3)));
  caption.append(html("br"), heatmapWords());
  const options = data.isSquare && data.tree.length ? [["tree", "by the tree"]] : [];
  options.push(["given", "as given"], ...data.tags.map((tag, k) => [String(k), `by ${tag.name}`]));
  choices(byId("order"), options, (order) => change({ order }));
  if (options.length < 2) byId("order").closest("label").remove();
}

function heatmapWords() {
  const tree = data.tree.length ? " The tree joins the nearest first (average linkage)." : "";
  const against = data.isSquare ? "" : " Rows are the datasets, columns the references.";
  return `Brighter is farther apart.${tree}${against} Choose a cell to look at that pair below.`;
}

// The matrix of distances with its tree, one cell for each pair.

class Heatmap extends InteractiveChart {
  constructor() {
    super(
      "heatmap",
      "Heatmap of distances. Arrow keys move from cell to cell, Enter opens the pair below.",
      "heatmap-caption",
    );
    this.n = names.length;
    this.m = references.length;
    const finite = distances.flatMap((row) => [...row]).filter(Number.isFinite);
    [this.low, this.high] = finite.length ? limits(finite) : [0, 1];
    this.cursor = { row: 0, column: Math.min(1, this.m - 1) };
    this.container.addEventListener("focus", () => {
      if (this.container.matches(":focus-visible")) this.at = this.cursor;
      this.mark();
    });
    this.start(["order", "colour", "theme"]);
  }

  orders() {
    const rows = data.isSquare && state.order === "tree" ? data.order : orderByTag();
    return [rows, data.isSquare ? rows : references.map((_, j) => j)];
  }

  measure(width) {
    const { n, m } = this;
    const label = Math.min(10 + 6.8 * longest(names), 0.3 * width);
    const most = Math.max(3, Math.floor((label - 8) / 6.6));
    const strip = state.colour === "none" ? 0 : 12;
    const room = (width - label - strip - 4) / m;
    const cell = clamp(room, 1, Math.max(36, Math.min(64, 420 / m)));
    const labelled = cell >= 9;
    const left = (labelled ? label : 2) + strip;
    const size = labelled ? cell : Math.min((width - left - 4) / m, 600 / Math.max(n, m));
    const tree = data.tree.length && state.order === "tree" ? clamp(width / 7, 48, 84) : 0;
    const widest = 6.6 * longest(references);
    const upright = widest < size - 4;
    const turned = Math.min(14 + 0.75 * widest, 130);
    const foot = labelled ? (upright ? 20 : turned) : 4;
    return { left, top: tree + 4, tree, size, labelled, upright, foot, strip, most };
  }

  picture(width) {
    const { n, m } = this;
    const [rows, columns] = this.orders();
    this.layout = { ...this.measure(width), rows, columns };
    const { left, top, size, foot, tree, strip, labelled } = this.layout;
    const picture = canvas(left + size * m + 4, top + size * n + foot);
    const box = { x: left, y: top, width: size * m, height: size * n };
    const href = this.pixels(rows, columns);
    picture.append(svg("image", { ...box, preserveAspectRatio: "none", href }));
    if (tree) picture.append(this.tree(), ...this.partings());
    if (strip) picture.append(...rows.map((i, y) => this.strip(i, y)));
    if (labelled) picture.append(...this.rowLabels(), ...this.columnLabels());
    if (m <= 12 && size >= 34) picture.append(...this.numbers());
    if (inference && size >= 9) picture.append(...this.crosses());
    picture.append(svg("g", { class: "marks" }));
    return picture;
  }

  share(value) {
    return clamp((value - this.low) / (this.high - this.low || 1), 0, 1);
  }

  // One pixel per cell, enlarged without smoothing: 200 × 200 costs no more than 5 × 5.
  pixels(rows, columns) {
    const sheet = html("canvas", { width: this.m, height: this.n });
    const context = sheet.getContext("2d");
    rows.forEach((i, y) =>
      columns.forEach((j, x) => {
        const value = distances[i][j];
        context.fillStyle = Number.isFinite(value) ? shade(this.share(value)) : "#999999";
        context.fillRect(x, y, 1, 1);
      }),
    );
    return sheet.toDataURL();
  }

  tree() {
    const { left, top, tree, size } = this.layout;
    const height = linear(
      [0, limits(data.tree.map((merge) => merge[2]))[1]],
      [top - 5, top - tree + 2],
    );
    const across = (i) => left + size * (data.order.indexOf(i) + 0.5);
    const nodes = names.map((_, i) => ({ x: across(i), y: height(0) }));
    let d = "";
    for (const [a, b, distance] of data.tree) {
      const y = height(distance);
      d += `M${nodes[a].x} ${nodes[a].y}V${y}H${nodes[b].x}V${nodes[b].y}`;
      nodes.push({ x: (nodes[a].x + nodes[b].x) / 2, y });
    }
    return svg("path", { d, class: "tree" });
  }

  // Lines between the groups.
  partings() {
    if (!data.groups) return [];
    const { left, top, size } = this.layout;
    const group = (k) => data.groups[data.order[k]];
    const ends = data.order.map((_, k) => k).filter((k) => k && group(k) !== group(k - 1));
    return ends.flatMap((k) => [
      line(left + size * k, top, left + size * k, top + size * this.n, "parting"),
      line(left, top + size * k, left + size * this.m, top + size * k, "parting"),
    ]);
  }

  strip(i, y) {
    const { left, top, size } = this.layout;
    const box = { x: left - 10, y: top + y * size, width: 7, height: size + 0.3 };
    return svg("rect", { ...box, fill: look(i).fill });
  }

  rowLabels() {
    const { left, top, size, strip, rows, most } = this.layout;
    const at = { "text-anchor": "end", "dominant-baseline": "central" };
    return rows.map((i, y) =>
      sized(
        text(left - strip - 6, top + (y + 0.5) * size, shortened(names[i], most), at),
        clamp(size * 0.8, 8, 12),
      ),
    );
  }

  columnLabels() {
    const { left, top, size, upright, columns } = this.layout;
    const down = top + this.n * size + 13;
    return columns.map((j, x) => {
      const across = left + (x + 0.5) * size;
      const at = upright
        ? { "text-anchor": "middle" }
        : { "text-anchor": "end", transform: `rotate(-45 ${across} ${down - 4})` };
      const label = text(across, down, shortened(references[j]), at);
      return sized(label, clamp(size * 0.8, 8, 12));
    });
  }

  numbers() {
    const { left, top, size, rows, columns } = this.layout;
    const largest = Math.max(Math.abs(this.high), Math.abs(this.low), 1e-300);
    const decimals = clamp(2 - Math.floor(Math.log10(largest)), 0, 6);
    const words = (value) => {
      if (value === 0) return "0";
      return decimals < 5 ? value.toFixed(decimals).replace("-", "−") : formatted(value, 2);
    };
    const at = { "text-anchor": "middle", "dominant-baseline": "central" };
    return rows.flatMap((i, y) =>
      columns.map((j, x) => {
        const value = distances[i][j];
        const label = text(left + (x + 0.5) * size, top + (y + 0.5) * size, words(value), at);
        label.style.fill = this.share(value) > 0.55 ? "#111111" : "#ffffff";
        return sized(label, clamp(size / 4, 9, 12));
      }),
    );
  }

  // A cross in the corner of the cells of pairs that are not told apart.
  crosses() {
    const { left, top, size, rows, columns } = this.layout;
    const at = { "text-anchor": "end", "dominant-baseline": "hanging", class: "cross" };
    return rows.flatMap((i, y) =>
      columns.flatMap((j, x) => {
        if ((data.isSquare && i === j) || inference.holm[i][j] <= inference.level) return [];
        const label = text(left + (x + 1) * size - 2, top + y * size + 2, "×", at);
        label.style.fill = this.share(distances[i][j]) > 0.55 ? "#111111" : "#ffffff";
        return [sized(label, clamp(size / 3, 8, 13))];
      }),
    );
  }

  // The chosen pair is dashed, in both of its cells; the cell under the pointer is solid. Black under
  // white, so that they are visible on every colour.
  mark() {
    const { left, top, size, rows, columns } = this.layout;
    const { marks } = this;
    const frame = (i, j, kind) => {
      const [x, y] = [left + columns.indexOf(j) * size, top + rows.indexOf(i) * size];
      const box = { x, y, width: size, height: size };
      marks.append(svg("rect", { ...box, class: "under" }), svg("rect", { ...box, class: kind }));
    };
    const [a, b] = state.pair;
    frame(a, b, "chosen");
    if (data.isSquare) frame(b, a, "chosen");
    if (this.at) frame(...this.pair(), "around");
  }

  pair() {
    return [this.layout.rows[this.at.row], this.layout.columns[this.at.column]];
  }

  words() {
    const [i, j] = this.pair();
    const bound = i === j && data.isSquare ? NaN : bounds[i][j];
    const about = Number.isFinite(bound) ? ` ± ${formatted(bound, 2)}` : "";
    const sure = inference && !(data.isSquare && i === j) ? `\n${sureness(i, j)}` : "";
    return `${names[i]} – ${references[j]}\n${formatted(distances[i][j])}${about}${sure}`;
  }

  point(x, y) {
    const column = Math.floor((x - this.layout.left) / this.layout.size);
    const row = Math.floor((y - this.layout.top) / this.layout.size);
    const hit = row >= 0 && row < this.n && column >= 0 && column < this.m;
    this.at = hit ? { row, column } : null;
    return hit ? this.words() : "";
  }

  step(down, right) {
    this.cursor.row = clamp(this.cursor.row + down, 0, this.n - 1);
    this.cursor.column = clamp(this.cursor.column + right, 0, this.m - 1);
    this.at = this.cursor;
    return this.words();
  }

  pick() {
    if (this.at) change({ pair: this.pair() });
  }
}

const longest = (list) => Math.max(...list.map((name) => [...shortened(name)].length));

function sized(label, size) {
  label.style.fontSize = `${size}px`;
  return label;
}

// The rows as given, or sorted by the chosen tag; rows without it last.
function orderByTag() {
  const given = names.map((_, i) => i);
  const tag = data.tags[Number(state.order)];
  if (!tag) return given;
  const rank = (i) => {
    if (tag.values[i] === null) return Infinity;
    return tag.numeric ? tag.values[i] : tag.groups.indexOf(tag.values[i]);
  };
  const after = (a, b) => (rank(a) > rank(b) ? 1 : rank(a) < rank(b) ? -1 : a - b);
  return given.sort(after);
}

function drawHeatmap() {
  if (names.length === 1 && data.isSquare) {
    replaceSection("distances", "There is only one dataset.");
    return;
  }
  const { low, high } = new Heatmap();
  const tree = data.tree.length ? " The tree is average linkage." : "";
  const against = data.isSquare ? "" : " Rows are the datasets, columns the references.";
  byId("heatmap-caption").append(
    gradient(formatted(low, 3), formatted(high, 3)),
    html("br"),
    `Brighter is farther apart.${tree}${against} Choose a cell to see that pair below.`,
    inference ? " A cross marks pairs that are not told apart (p > 0.05, Holm)." : "",
  );
  const options = data.isSquare && data.tree.length ? [["tree", "by the tree"]] : [];
  options.push(["given", "as given"], ...data.tags.map((tag, k) => [String(k), `by ${tag.name}`]));
  choices(byId("order"), options, (order) => change({ order }));
  if (options.length < 2) byId("order").closest("label").remove();
}

// Scales, axes and colours, shared by all charts.

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

function linear([low, high], [from, to]) {
  const span = high - low || 1;
  return (x) => from + ((x - low) / span) * (to - from);
}

function ticks(low, high, wanted = 5) {
  const rough = (high - low || 1) / wanted;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * size >= rough) * size;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

// Draw into a container now, and again when its width or the theme changes.
function responsive(container, draw) {
  let width = 0;
  const redraw = () => {
    width = container.clientWidth;
    if (width > 0) draw(width);
  };
  new ResizeObserver(() => container.clientWidth !== width && redraw()).observe(container);
  redraw();
  return redraw;
}

function place(container, picture) {
  container.querySelector("svg")?.remove();
  container.prepend(picture);
}

function canvas(width, height, label) {
  const seen = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, ...seen });
}

function text(x, y, words, attributes = {}) {
  return svg("text", { x, y, ...attributes }, words);
}

function line(x1, y1, x2, y2, name) {
  return svg("path", { d: `M${x1} ${y1}L${x2} ${y2}`, class: name });
}

// Both axes of a box, with grid lines; `x` and `y` have `scale`, `at`, `form` and `title`.
function axes(picture, box, x, y) {
  const { left, right, top, bottom } = box;
  for (const value of y.at) {
    const height = y.scale(value);
    picture.append(line(left, height, right, height, "grid"));
    picture.append(
      text(left - 7, height + 4, y.form(value), { "text-anchor": "end", class: "quiet" }),
    );
  }
  for (const value of x.at) {
    const across = x.scale(value);
    picture.append(line(across, bottom, across, bottom + 4, "axis"));
    picture.append(
      text(across, bottom + 18, x.form(value), { "text-anchor": "middle", class: "quiet" }),
    );
  }
  picture.append(line(left, bottom, right, bottom, "axis"));
  picture.append(
    text((left + right) / 2, bottom + 36, x.title, { "text-anchor": "middle", class: "quiet" }),
  );
  picture.append(
    text(left - 7, top - 10, y.title, { class: "quiet", "text-anchor": "start", dx: -left + 8 }),
  );
}

// Eigenvalues on a logarithmic axis: natural logarithms in, powers of ten written.
function spectralAxis(lowest, highest, from, to) {
  const first = Math.floor(lowest / Math.LN10 + 1e-6);
  const last = Math.ceil(highest / Math.LN10 - 1e-6);
  const every = Math.ceil((last - first) / 8);
  const at = [];
  for (let e = last; e >= first; e -= every) at.push(e * Math.LN10);
  const scale = linear([first * Math.LN10, last * Math.LN10], [from, to]);
  return { scale, at, form: (v) => power(Math.round(v / Math.LN10)), title: "eigenvalue λᵢ + γ" };
}

function countAxis(k, from, to) {
  const at = [1, ...ticks(1, k, 6).filter((i) => i >= 0.08 * k)];
  return { scale: linear([1, Math.max(k, 2)], [from, to]), at, form: String, title: "index i" };
}

function path(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function ring(x, y, r, colour) {
  return svg("circle", { cx: x, cy: y, r, fill: "none", stroke: colour, "stroke-width": 2 });
}

const shade = (share) => data.shades[Math.round(share * (data.shades.length - 1))];

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// The part of the colour scale that contrasts with the background.
const tint = (share) => shade(isDark() ? 0.25 + 0.75 * share : 0.94 * share);

const category = (k) => {
  const colour = data.colours[k % data.colours.length];
  return colour === "#000000" ? "var(--black)" : colour;
};

// Shapes repeat the colours, for readers who cannot distinguish them.
const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  (r) => `M0 ${-1.35 * r}L${1.35 * r} 0L0 ${1.35 * r}L${-1.35 * r} 0Z`,
  (r) => `M0 ${-1.25 * r}L${1.2 * r} ${r}H${-1.2 * r}Z`,
  (r) => `M0 ${1.25 * r}L${1.2 * r} ${-r}H${-1.2 * r}Z`,
];

function shape(k, r) {
  return SHAPES[k % SHAPES.length](r);
}

// The colour and the shape of dataset i under the selected colouring.
function look(i) {
  const choice = state.colour;
  const grey = { fill: "var(--faint)", shape: 0 };
  if (choice === "none") return { fill: "var(--first)", shape: 0 };
  if (choice === "group") return { fill: category(data.groups[i]), shape: data.groups[i] };
  const tag = data.tags[Number(choice)];
  const value = tag.values[i];
  if (value === null || value === undefined) return grey;
  if (!tag.numeric) {
    const k = tag.groups.indexOf(value);
    return { fill: category(k), shape: k };
  }
  const [low, high] = tagRange(tag);
  return { fill: tint(high > low ? (value - low) / (high - low) : 0.5), shape: 0 };
}

function tagRange(tag) {
  return limits(tag.values.filter((value) => value !== null));
}

function tagsOf(i) {
  const words = (value) => (typeof value === "number" ? formatted(value) : (value ?? "–"));
  return data.tags.map((tag) => `${tag.name}: ${words(tag.values[i])}`);
}

function gradient(low, high, colour = shade, width = 150) {
  const picture = svg("svg", { width, height: 10, "aria-hidden": "true" });
  const steps = data.shades.length;
  for (let k = 0; k < steps; k += 1) {
    const box = { x: (k * width) / steps, y: 0, width: width / steps + 0.6, height: 10 };
    picture.append(svg("rect", { ...box, fill: colour(k / (steps - 1)) }));
  }
  return html("span", { class: "scale" }, low, picture, high);
}

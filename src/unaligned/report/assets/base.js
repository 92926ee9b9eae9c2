// Data, elements, numbers and the state that the sections share.

const data = JSON.parse(document.getElementById("data").textContent);

function unpack(text, Kind, rows) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const flat = new Kind(bytes.buffer);
  const width = rows ? flat.length / rows : 0;
  return Array.from({ length: rows }, (_, i) => flat.subarray(i * width, (i + 1) * width));
}

const names = data.names;
const references = data.references;
const distances = unpack(data.distances, Float64Array, names.length);
const bounds = unpack(data.bounds, Float64Array, names.length);
const inference = data.inference;
if (inference) {
  for (const key of ["corrected", "low", "high", "p", "holm"]) {
    inference[key] = unpack(inference[key], Float64Array, names.length);
  }
}
const spectra = data.spectra;
if (spectra) {
  spectra.eigenvalues = unpack(spectra.eigenvalues, Float64Array, spectra.names.length);
  spectra.errors = unpack(spectra.errors, Float32Array, spectra.names.length);
  spectra.logs = spectra.eigenvalues.map((row) => row.map((x) => Math.log(x + spectra.gamma)));
}

function limits(values) {
  return values.reduce(
    ([low, high], x) => [Math.min(low, x), Math.max(high, x)],
    [Infinity, -Infinity],
  );
}

const byId = (id) => document.getElementById(id);

// Children are elements or text; text is never parsed as markup.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function named(text) {
  return html("bdi", { class: text.length > 24 ? "long" : null }, text);
}

const RAISED = {
  "-": "⁻",
  0: "⁰",
  1: "¹",
  2: "²",
  3: "³",
  4: "⁴",
  5: "⁵",
  6: "⁶",
  7: "⁷",
  8: "⁸",
  9: "⁹",
};

function power(exponent) {
  if (exponent === 0) return "1";
  return "10" + [...String(exponent)].map((sign) => RAISED[sign]).join("");
}

// Four digits, as in the sentences of the summary.
function formatted(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(x)));
  if (size < -3 || size > 5) {
    const mantissa = Number((x / 10 ** size).toPrecision(Math.min(digits, 3)));
    const factor = mantissa === 1 ? "" : `${mantissa}·`.replace("-", "−");
    return `${factor}${power(size)}`;
  }
  return String(Number(x.toPrecision(digits))).replace("-", "−");
}

function percent(share) {
  if (share > 0 && share < 0.005) return "<1 %";
  return `${Math.round(100 * share)} %`;
}

function shortened(text, most = 22) {
  const signs = [...text];
  return signs.length > most ? signs.slice(0, most - 1).join("") + "…" : text;
}

// State shared by the sections. `change` notifies the listeners of a key.
const state = { pair: [0, 0], colour: "none", method: "mds", order: "tree", join: false, tag: 0 };
const listeners = [];

function listen(keys, draw) {
  listeners.push([keys, draw]);
}

function change(parts) {
  Object.assign(state, parts);
  for (const [keys, draw] of listeners) {
    if (keys.some((key) => key in parts)) draw();
  }
}

// Compare the dataset chosen now with the one chosen before.
function choose(i) {
  const [first, second] = state.pair;
  if (i !== second) change({ pair: [second, i] });
  else change({ pair: [first, second] });
}

function announce(text) {
  byId("announcer").textContent = text;
}

function choices(select, options, onchange) {
  options.forEach(([value, text]) => select.append(html("option", { value }, text)));
  select.addEventListener("change", () => onchange(select.value));
}

// Replace a section's content by the reason why it is absent.
function replaceSection(id, reason) {
  const section = byId(id);
  section.querySelectorAll(":scope > :not(h2)").forEach((part) => part.remove());
  section.append(html("p", { class: "note" }, reason));
}

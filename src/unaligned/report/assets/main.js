// The start: the initial selection, and each section drawn in turn.

function themeButton() {
  const button = byId("theme");
  const themes = ["auto", "light", "dark"];
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    if (themes[at] === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = themes[at];
    button.textContent = `Theme: ${themes[at]}`;
    change({ theme: themes[at] });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    change({ theme: themes[at] }),
  );
}

// Numbers before text; text that is unique to each dataset, such as paths, is no colouring.
function firstColour() {
  const numeric = data.tags.findIndex((tag) => tag.numeric);
  if (numeric >= 0) return String(numeric);
  const shared = data.tags.findIndex((tag) => tag.groups.length < names.length);
  if (shared >= 0) return String(shared);
  return data.groups ? "group" : "none";
}

// The farthest pair.
function firstPair() {
  let best = [0, Math.min(1, references.length - 1)];
  if (!data.isSquare) best = [0, 0];
  distances.forEach((values, i) =>
    values.forEach((distance, j) => {
      if (distance > distances[best[0]][best[1]]) best = [i, j];
    }),
  );
  return best;
}

state.colour = firstColour();
state.pair = firstPair();
state.order = data.tree.length ? "tree" : "given";
state.join = names.length <= 12;
byId("join").checked = state.join;
themeButton();
// In separate tasks, so that the first sections appear before the last ones are drawn.
const sections = [
  colourControls,
  drawHeatmap,
  drawMap,
  drawPair,
  drawSpectra,
  drawCorrelation,
  drawTables,
];
(function next() {
  const draw = sections.shift();
  if (!draw) {
    document.documentElement.dataset.ready = "true";
    return;
  }
  draw();
  setTimeout(next, 0);
})();

// What makes a pair differ: the changes of the distance without features or groups of rows.

const WHY = {
  features: ["Which features make them differ", "feature"],
  rows: ["Which rows make them differ", "group"],
  scale: ["At which scale they differ", "quantity"],
};

const LETTER = 7; // pixels of a letter, on average at most

function drawWhy() {
  const [a, b] = state.pair;
  const isShown = ({ pair: [i, j] }) => (i === a && j === b) || (data.isSquare && i === b && j === a);
  byId("pair-why").replaceChildren(...data.why.filter(isShown).map(whySection));
}

function whySection(why) {
  const [title, noun] = WHY[why.by];
  const words = html("p", { class: "lead" }, why.words);
  const section = html("figure", { class: "why" }, html("h3", {}, title), words);
  if (why.by === "scale") {
    section.append(quantitiesTable(why, noun));
    return section;
  }
  const chart = html("div", { class: "chart" });
  const more = why.more ? ` ${why.more} smaller ones are not shown.` : "";
  const caption = `Change of the distance when left out: left of the line it is smaller without, \
right of it larger. Whiskers are twice the noise; grey bars do not exceed what the largest of all \
reaches by noise.${more}`;
  const numbers = html("details", {}, html("summary", {}, "Changes as a table"));
  const rows = why.labels.map((label, i) => [
    label,
    why.change[i],
    why.noise[i],
    why.marked[i] ? "yes" : "no",
  ]);
  numbers.append(table(title, [noun, "change", "noise", "exceeds noise"], rows));
  section.append(chart, html("figcaption", {}, caption), numbers);
  responsive(chart, (width) => place(chart, changeBars(why, Math.min(width, 760))));
  return section;
}

function changeBars(why, width) {
  const n = why.labels.length;
  const largest = why.labels.slice(0, 3).map((label, i) => `${label} ${formatted(why.change[i], 2)}`);
  const picture = canvas(width, n * 24 + 34, `Changes without each, largest ${largest.join(", ")}.`);
  const ends = why.change.flatMap((change, i) => {
    const whisker = 2 * why.noise[i];
    return change === null ? [] : [change - whisker, change + whisker];
  });
  const [low, high] = limits([0, ...ends]);
  const most = Math.floor(Math.min(250, width * 0.38) / LETTER);
  const shown = why.labels.map((label) => shortened(label, most));
  const left = Math.max(...shown.map((label) => [...label].length)) * LETTER + 4;
  const x = linear([low, high === low ? low + 1 : high], [left + 8, width - 14]);
  const bottom = n * 24 + 6;
  ticks(low, high).forEach((at) => {
    picture.append(line(x(at), 4, x(at), bottom, "grid"));
    picture.append(text(x(at), bottom + 18, formatted(at, 2), { "text-anchor": "middle", class: "quiet" }));
  });
  why.labels.forEach((label, i) => {
    const y = i * 24 + 16;
    const name = text(left, y + 4, shown[i], { "text-anchor": "end" });
    if (shown[i] !== label) name.append(svg("title", {}, label));
    picture.append(name);
    const [change, noise] = [why.change[i], why.noise[i]];
    if (change === null) return;
    const [from, to] = [x(0), x(change)].sort((p, q) => p - q);
    const colour = change < 0 ? "var(--first)" : "var(--second)";
    const fill = why.marked[i] ? colour : "var(--quiet)";
    const opacity = why.marked[i] ? 1 : 0.45;
    picture.append(
      svg("rect", { x: from, y: y - 7, width: Math.max(to - from, 1), height: 14, rx: 2, fill, opacity }),
      line(x(change - 2 * noise), y, x(change + 2 * noise), y, "whisker"),
    );
  });
  picture.append(line(x(0), 2, x(0), bottom, "axis"));
  return picture;
}

function quantitiesTable(why, noun) {
  const shown = (quantity, side) => {
    if (quantity.values[side] === null) return "–";
    const ends = [quantity.low[side], quantity.high[side]].map((end) => formatted(end, 3));
    return `${formatted(quantity.values[side], 3)} (${ends.join(" to ")})`;
  };
  const rows = why.quantities.map((quantity) => [
    quantity.name,
    shown(quantity, 0),
    shown(quantity, 1),
    quantity.differs ? "yes" : "no",
  ]);
  return table("Quantities of both spectra, with 95 % intervals", [noun, ...why.names, "differs"], rows);
}

// Charts that answer the pointer and the keys.

const tooltip = byId("tooltip");

function hint(words, x, y) {
  tooltip.hidden = !words;
  if (!words) return;
  tooltip.textContent = words;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = clamp(x + 14, 4, window.innerWidth - width - 4);
  const above = y + 18 + height > window.innerHeight;
  tooltip.style.left = `${left}px`;
  tooltip.style.top = `${above ? y - height - 12 : y + 18}px`;
}

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// One stop of the tab key, steered from inside by arrows. A chart of its own has
//   picture(width)  what is drawn           mark()      what stands out in it now
//   point(x, y)     point there: the words  step(r, c)  go on by keys: the words
//   pick()          choose it              at          what is pointed at, or null
class Steered {
  constructor(id, label, caption) {
    this.container = byId(id);
    const names = { role: "application", "aria-label": label, "aria-describedby": caption };
    fill(this.container, { tabindex: 0, ...names }, []);
  }

  // Listen and draw: now, when the width changes, and when something of `keys` does.
  start(keys) {
    for (const kind of ["pointermove", "pointerdown", "pointerleave"]) {
      this.container.addEventListener(kind, (event) => this.pointed(event));
    }
    this.container.addEventListener("click", (event) => {
      this.point(...this.inside(event));
      this.pick();
    });
    this.container.addEventListener("keydown", (event) => this.pressed(event));
    this.container.addEventListener("blur", () => {
      this.at = null;
      this.mark();
    });
    listen(
      keys,
      responsive(this.container, (width) => {
        place(this.container, this.picture(width));
        this.mark();
      }),
    );
    listen(["pair"], () => this.mark());
  }

  inside(event) {
    const box = this.container.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  pointed(event) {
    if (event.type === "pointerleave") {
      this.at = null;
      hint("");
    } else {
      hint(this.point(...this.inside(event)), event.clientX, event.clientY);
    }
    this.mark();
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.pick();
    else if (STEPS[event.key]) announce(this.step(...STEPS[event.key]));
    else return;
    this.mark();
    event.preventDefault();
  }

  // The empty group that holds what stands out, on top of all else.
  get marks() {
    const marks = this.container.querySelector(".marks");
    marks.replaceChildren();
    return marks;
  }
}

// The nearest of some places, or null where none is as near as this.
function nearest(places, x, y, within) {
  let best = null;
  let least = within ** 2;
  places.forEach(([a, b], i) => {
    const away = (a - x) ** 2 + (b - y) ** 2;
    if (away < least) [best, least] = [i, away];
  });
  return best;
}

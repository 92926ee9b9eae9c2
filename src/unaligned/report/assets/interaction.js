// Charts that respond to the pointer and the keyboard.

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

// One tab stop; arrow keys move inside. A chart provides
//   picture(width)  the drawing             mark()      the highlighted parts
//   point(x, y)     text at the pointer     step(r, c)  text after a key
//   pick()          choose the current item at          the current item, or null
class InteractiveChart {
  constructor(id, label, caption) {
    this.container = byId(id);
    const names = { role: "application", "aria-label": label, "aria-describedby": caption };
    fill(this.container, { tabindex: 0, ...names }, []);
  }

  // Draw now, when the width changes, and when one of `keys` changes.
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

  // The empty group for the highlights, on top of everything else.
  get marks() {
    const marks = this.container.querySelector(".marks");
    marks.replaceChildren();
    return marks;
  }
}

// The nearest place, or null if none is within the limit.
function nearest(places, x, y, within) {
  let best = null;
  let least = within ** 2;
  places.forEach(([a, b], i) => {
    const away = (a - x) ** 2 + (b - y) ** 2;
    if (away < least) [best, least] = [i, away];
  });
  return best;
}

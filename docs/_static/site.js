// What the theme leaves to do for those who use a keyboard or a screen reader.
window.addEventListener("load", () => {
  // Cells with sentences get a minimum width.
  for (const cell of document.querySelectorAll("table td")) {
    if (cell.textContent.trim().length > 40) cell.classList.add("prose");
  }
  // Tables and formulas that scroll can be scrolled with the arrow keys.
  for (const wide of document.querySelectorAll("table, div.math")) {
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
  }
  // A space between a function such as log and its argument, as TeX sets it.
  for (const sign of document.querySelectorAll("mo")) {
    if (sign.textContent === "\u2061") sign.setAttribute("rspace", "0.17em");
  }
  // Where a button shows a text, that is its name.
  for (const button of document.querySelectorAll(".search-button-field[aria-label]")) {
    if (button.innerText.trim()) button.removeAttribute("aria-label");
  }
  // Links over the thumbnails of the gallery have a hidden text.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.internal")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  // Parameters of a signature are no list of definitions: they have no terms.
  for (const list of document.querySelectorAll("dt.sig > dl")) {
    list.setAttribute("role", "presentation");
    for (const item of list.children) item.setAttribute("role", "presentation");
  }
  for (const toggle of document.querySelectorAll("details > summary")) {
    const entry = toggle.parentElement.previousElementSibling;
    if (!toggle.innerText.trim() && entry) toggle.setAttribute("aria-label", `Pages of ${entry.textContent}`);
  }
});

// The texts that do not fit into their element.
[...document.querySelectorAll("main *, header *")].filter((e) =>
  e.checkVisibility() && !e.closest("svg, .drawing") && e.scrollWidth > e.clientWidth + 1
  && getComputedStyle(e).overflow !== "visible").map((e) => e.textContent)

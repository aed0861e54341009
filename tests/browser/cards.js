// Each card with its rectangle on the screen, and each of its texts with its own.
[...document.querySelectorAll(".node")].map((node) => {
  const sides = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
  return {
    id: node.dataset.id,
    card: sides(node.querySelector(".card")),
    texts: [...node.querySelectorAll("text")].map((e) => [e.textContent, ...sides(e)]),
    mark: [...node.querySelectorAll(".mark")].map(sides),
  };
})

// Every text with its colour and the one behind it: the card's, or that of the nearest element that has one.
(() => {
  const hex = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
    return a === 0 ? null : "#" + [r, g, b].map((each) => each.toString(16).padStart(2, "0")).join("");
  };
  const behind = (e) => {
    const card = e.closest(".node")?.querySelector(".card");
    if (card) return hex(getComputedStyle(card).fill);
    const own = hex(getComputedStyle(e).backgroundColor);
    return own ?? behind(e.parentElement);
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const isText = [...e.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (isText && e.checkVisibility() && !e.closest("title, script, style, template")) {
      const style = getComputedStyle(e);
      found.push([e.textContent.trim().slice(0, 40), hex(e.closest("svg") ? style.fill : style.color), behind(e)]);
    }
  }
  return found;
})()

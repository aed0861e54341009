// What the page of `idstack graph` does. All it shows is in the page already: cards, a template with the drawing of each
// hosted cluster, and the JSON form of the graph.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const graph = JSON.parse(byId("graph-data").textContent);
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const cards = [...document.querySelectorAll(".cluster")];
  const [search, cluster, identity, problems, details] = ["search", "cluster", "identity", "problems", "details"].map(byId);
  const KEYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  const after = neighbours("source", "target");
  const before = neighbours("target", "source");
  let selected = null; // the element whose details are shown

  function neighbours(from, to) {
    const found = new Map(graph.nodes.map((node) => [node.id, []]));
    for (const edge of graph.edges) {
      found.get(edge[from]).push(edge[to]);
    }
    return found;
  }

  function element(tag, text, className) {
    const made = document.createElement(tag);
    made.textContent = text ?? "";
    made.className = className ?? "";
    return made;
  }

  // Light and dark

  function scheme() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }

  function nameTheme() {
    const other = scheme() === "dark" ? "light" : "dark";
    byId("theme").setAttribute("aria-label", `Switch to the ${other} scheme`);
    byId("theme").title = `Switch to the ${other} scheme`;
  }

  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = scheme() === "dark" ? "light" : "dark";
    nameTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);

  // Hosted clusters

  function isOpen(card) {
    return card.classList.contains("open");
  }

  function setOpen(card, open) {
    const drawing = card.querySelector(".drawing");
    if (open && !drawing.firstChild) {
      drawing.append(card.querySelector("template").content.cloneNode(true));
      const found = drawn(card);
      found.forEach((node, index) => node.setAttribute("tabindex", index === 0 ? "0" : "-1"));
    }
    if (!open && selected && card.contains(selected)) {
      closeDetails();
    }
    card.classList.toggle("open", open);
    card.querySelector(".head").setAttribute("aria-expanded", String(open));
    drawing.hidden = !open;
    mark(card);
  }

  function drawn(card) {
    return [...card.querySelectorAll(".drawing .node")];
  }

  // Filters

  function textOf(node) {
    return [node.name, node.detail, node.reason, node.cluster, ...Object.values(node.facts)].join("\n").toLowerCase();
  }

  const texts = new Map(graph.nodes.map((node) => [node.id, textOf(node)]));
  const identities = graph.nodes.filter((node) => node.kind === "identity");
  // Everything behind an identity belongs to it: a search for a role or a scope finds who holds it.
  const chains = new Map(identities.map((node) => [node.id, [...reached(node.id, after)]]));

  // Of an identity, or of a hosted cluster: it may have a problem, or a name, that none of its identities has.
  function matches(node, words) {
    const ids = chains.get(node.id) ?? [node.id];
    return (
      (!cluster.value || node.cluster === cluster.value) &&
      (!identity.value || (node.kind === "identity" && node.name === identity.value)) &&
      (!problems.checked || node.health === "error" || node.health === "warning") &&
      words.every((word) => ids.some((id) => texts.get(id).includes(word)))
    );
  }

  function apply() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const isFiltered = Boolean(words.length || cluster.value || identity.value || problems.checked);
    const found = new Set(identities.filter((node) => matches(node, words)).map((node) => node.id));
    let shown = 0;
    for (const card of cards) {
      const own = after.get(card.dataset.id).filter((id) => found.has(id));
      card.matching = isFiltered ? new Set(own) : null;
      card.hidden = isFiltered && !own.length && !matches(nodes.get(card.dataset.id), words);
      shown += card.hidden ? 0 : 1;
      mark(card);
    }
    if (cluster.value) {
      setOpen(cards.find((card) => card.dataset.cluster === cluster.value), true);
    }
    byId("found").textContent = isFiltered ? `${counted(found.size, "identity", "identities")} in ${counted(shown, "cluster", "clusters")}` : "";
    byId("nothing").hidden = shown > 0;
    listProblems(cards.filter((card) => !card.hidden), found);
  }

  // On a phone the problems are a list, which the style shows in place of the drawings.
  function listProblems(shown, found) {
    document.body.classList.toggle("only-problems", problems.checked);
    const entries = shown.flatMap((card) => [
      ...own(nodes.get(card.dataset.id)),
      ...after.get(card.dataset.id).filter((id) => found.has(id)).map((id) => nodes.get(id)),
    ]);
    byId("listed").replaceChildren(...(problems.checked ? entries.map(listed) : []));
  }

  // A hosted cluster is listed for its conditions; its identities are listed themselves.
  function own(node) {
    const command = `\`.venv/bin/idstack doctor --stack ${graph.stack} --cluster ${node.name}\``;
    return node.facts.conditions ? [{ ...node, reason: node.facts.conditions, facts: { fix: command } }] : [];
  }

  function listed(node) {
    const item = element("li", "", node.health);
    item.append(element("h3", node.kind === "identity" ? `${node.cluster} ${node.name}` : node.name), state(node));
    // Of an identity whose renewal is due, its secret has it.
    const remedy = [node, ...[...(chains.get(node.id) ?? [])].map((id) => nodes.get(id))].find((each) => each.facts.fix)?.facts.fix;
    if (remedy) {
      const shown = element("p", "fix: ");
      shown.append(...fix(remedy));
      item.append(shown);
    }
    return item;
  }

  function state(node) {
    const text = node.reason ? `${graph.healths[node.health]}: ${node.reason}` : graph.healths[node.health];
    return element("p", text, `state ${node.health}`);
  }

  function counted(number, one, many) {
    return `${number} ${number === 1 ? one : many}`;
  }

  function mark(card) {
    const matching = card.matching;
    const whole = new Set();
    for (const id of matching ?? []) {
      chains.get(id).forEach((each) => whole.add(each));
      before.get(id).forEach((each) => whole.add(each));
    }
    card.classList.toggle("filtered", Boolean(matching?.size));
    const ids = after.get(card.dataset.id);
    card.querySelectorAll(".squares .square").forEach((square, index) => {
      square.classList.toggle("match", Boolean(matching?.has(ids[index])));
    });
    drawn(card).forEach((node) => node.classList.toggle("match", whole.has(node.dataset.id)));
    card.querySelectorAll(".drawing .edge").forEach((edge) => {
      edge.classList.toggle("match", whole.has(edge.dataset.source) && whole.has(edge.dataset.target));
    });
    card.querySelectorAll(".drawing svg").forEach((svg) => toFront(svg, ".edge.match"));
  }

  [search, cluster, identity, problems].forEach((each) => each.addEventListener("input", apply));

  // The chain of a node

  function reached(id, next) {
    const found = new Set([id]);
    const open = [id];
    while (open.length) {
      for (const each of next.get(open.pop())) {
        if (!found.has(each)) {
          found.add(each);
          open.push(each);
        }
      }
    }
    return found;
  }

  function trace(card, id) {
    const svg = card.querySelector(".drawing svg");
    const chain = id ? new Set([...reached(id, before), ...reached(id, after)]) : new Set();
    svg.classList.toggle("traced", Boolean(id));
    svg.querySelectorAll(".node").forEach((node) => node.classList.toggle("lit", chain.has(node.dataset.id)));
    svg.querySelectorAll(".edge").forEach((edge) => {
      edge.classList.toggle("lit", chain.has(edge.dataset.source) && chain.has(edge.dataset.target));
    });
    toFront(svg, ".edge.lit");
  }

  // What is drawn later covers what was drawn before.
  function toFront(svg, selector) {
    svg.querySelectorAll(selector).forEach((edge) => edge.parentNode.append(edge));
  }

  // Details

  function select(found) {
    const card = found.closest(".cluster");
    closeDetails();
    selected = found;
    found.classList.add("selected");
    trace(card, found.dataset.id);
    showDetails(card, nodes.get(found.dataset.id));
    // The details have taken a part of the window.
    found.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function showDetails(card, node) {
    const close = element("button", "\u00d7", "close");
    close.type = "button";
    close.setAttribute("aria-label", "Close the details");
    close.addEventListener("click", () => leaveDetails());
    const name = element("h2", node.name);
    name.id = "details-name";
    details.replaceChildren(close, element("div", graph.kinds[node.kind], "kind"), name, element("div", node.detail));
    if (node.health) {
      details.append(state(node));
    }
    const list = document.createElement("dl");
    for (const [term, value] of Object.entries(node.facts)) {
      const shown = element("dd", term === "fix" ? "" : value);
      if (term === "fix") {
        shown.append(...fix(value));
      }
      list.append(element("dt", term), shown);
    }
    details.append(list, ...linked(card, "Comes from", before.get(node.id)), ...linked(card, "Leads to", after.get(node.id)));
    details.hidden = false;
    document.body.classList.add("with-details");
  }

  // A fix has its commands between back quotes.
  function fix(text) {
    return text.split("`").flatMap((part, index) => {
      const isCommand = index % 2 === 1;
      return isCommand ? [element("code", part), copying(part)] : [element("span", part)];
    });
  }

  function copying(command) {
    const button = element("button", "Copy", "copy");
    button.type = "button";
    button.setAttribute("aria-label", `Copy ${command}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.previousSibling);
        button.textContent = "Selected";
      }
    });
    return button;
  }

  function linked(card, heading, ids) {
    // A scope is drawn with each role that is held at it.
    const first = new Map(drawn(card).map((node) => [node.dataset.id, node]).reverse());
    const found = drawn(card).filter((node) => ids.includes(node.dataset.id) && first.get(node.dataset.id) === node);
    if (!found.length) {
      return [];
    }
    const list = document.createElement("ul");
    for (const each of found) {
      const node = nodes.get(each.dataset.id);
      const isWell = !node.health || node.health === "ok";
      const health = isWell ? "" : `: ${graph.healths[node.health]}`;
      const link = element("button", `${graph.kinds[node.kind]} ${node.name}${health}`, isWell ? "" : node.health);
      link.type = "button";
      link.addEventListener("click", () => {
        focusNode(each);
        select(each);
      });
      const item = document.createElement("li");
      item.append(link);
      list.append(item);
    }
    return [element("h3", heading), list];
  }

  function closeDetails() {
    if (selected) {
      selected.classList.remove("selected");
      trace(selected.closest(".cluster"), null);
    }
    selected = null;
    details.hidden = true;
    document.body.classList.remove("with-details");
  }

  function leaveDetails() {
    const left = selected;
    closeDetails();
    left?.focus();
  }

  // A picture for a ticket

  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "font-size", "font-family", "opacity"];

  // The drawing as it is shown now. Its colours are in the page's style, so each element takes its own along.
  function savePng(card) {
    const svg = card.querySelector(".drawing svg");
    const copy = svg.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [svg, ...svg.querySelectorAll("*")].forEach((own, index) => {
      const computed = getComputedStyle(own);
      STYLES.forEach((name) => copies[index].setAttribute(name, computed.getPropertyValue(name)));
    });
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = document.createElement("canvas");
      const { width, height } = svg.viewBox.baseVal;
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      const context = canvas.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((picture) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(picture);
        link.download = `${graph.stack}-${card.dataset.cluster}.png`;
        link.click();
        URL.revokeObjectURL(link.href);
      });
    });
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  }

  // Mouse and keyboard

  document.addEventListener("click", (event) => {
    const head = event.target.closest(".head");
    const node = event.target.closest(".drawing .node");
    if (event.target.closest(".png")) {
      savePng(event.target.closest(".cluster"));
    } else if (head) {
      const card = head.closest(".cluster");
      setOpen(card, !isOpen(card));
    } else if (node) {
      focusNode(node);
      select(node);
    } else if (event.target.closest(".drawing")) {
      closeDetails();
    }
  });

  function focusNode(node) {
    drawn(node.closest(".cluster")).forEach((each) => each.setAttribute("tabindex", each === node ? "0" : "-1"));
    node.focus();
  }

  // The nearest node in the direction of an arrow key; a line counts more than a short way.
  function nextTo(node, [right, down]) {
    const here = node.getBoundingClientRect();
    const lines = right > 0 ? after.get(node.dataset.id) : right < 0 ? before.get(node.dataset.id) : [];
    let nearest = null;
    let least = Infinity;
    for (const each of drawn(node.closest(".cluster"))) {
      const there = each.getBoundingClientRect();
      const [across, along] = [there.left - here.left, there.top - here.top];
      const ahead = across * right + along * down;
      const aside = Math.abs(right ? along : across);
      const isAhead = ahead > 4 && (right !== 0 || aside < 4);
      const distance = ahead + 3 * aside + (lines.includes(each.dataset.id) ? 0 : 10000);
      if (each !== node && isAhead && distance < least) {
        [nearest, least] = [each, distance];
      }
    }
    return nearest;
  }

  function escape() {
    const card = document.activeElement.closest(".cluster.open");
    if (!details.hidden) {
      leaveDetails();
    } else if (document.activeElement === search && search.value) {
      search.value = "";
      apply();
    } else if (card) {
      setOpen(card, false);
      card.querySelector(".head").focus();
    } else {
      document.activeElement.blur();
    }
  }

  function arrowed(target, direction) {
    const node = target.closest(".drawing .node");
    const head = target.closest(".head");
    if (node) {
      return nextTo(node, direction);
    }
    if (!head) {
      return null;
    }
    const card = head.closest(".cluster");
    if (isOpen(card) && direction[1] > 0) {
      return drawn(card)[0];
    }
    const shown = cards.filter((each) => !each.hidden);
    return shown[shown.indexOf(card) + direction[0] + direction[1]]?.querySelector(".head");
  }

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input[type=search], select");
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "Escape") {
      escape();
    } else if (event.key === "/" && !isTyping) {
      search.focus();
      search.select();
    } else if (KEYS[event.key] && !isTyping) {
      const next = arrowed(event.target, KEYS[event.key]);
      if (!next) {
        return;
      }
      if (next.matches(".node")) {
        focusNode(next);
        if (!details.hidden) {
          select(next);
        }
      } else {
        next.focus();
      }
    } else if ((event.key === "Enter" || event.key === " ") && event.target.matches(".node")) {
      select(event.target);
    } else {
      return;
    }
    event.preventDefault();
  });

  nameTheme();
  if (cards.length === 1) {
    setOpen(cards[0], true);
  }
})();

// Draws what an element has in data-still: tags with properties and children, or text.
(() => {
  const make = (part) => {
    if (typeof part === "string") return document.createTextNode(part);
    const [tag, properties, children] = part;
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "style") Object.assign(element.style, value);
      else if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.map(make));
    return element;
  };
  const draw = (element) => element.replaceChildren(make(JSON.parse(element.dataset.still)));
  const options = { subtree: true, childList: true, attributes: true, attributeFilter: ["data-still"] };
  new MutationObserver((changes) => {
    const found = new Set();
    for (const { type, target, addedNodes } of changes)
      if (type === "attributes") found.add(target);
      else
        for (const node of addedNodes) {
          if (!node.dataset) continue;
          if ("still" in node.dataset) found.add(node);
          node.querySelectorAll("[data-still]").forEach((inner) => found.add(inner));
        }
    found.forEach(draw);
  }).observe(document, options);
})();

// Draws what an element has in data-still: tags with properties and children, or text.
// What was drawn before and is the same stays: a focus, a selection, a button that is pressed.
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

  // Makes `there` equal to `made`; children are the same by tag and id, in their order.
  const update = (there, made) => {
    if (there.isEqualNode(made)) return;
    if (there.nodeType === Node.TEXT_NODE) return void (there.data = made.data);
    for (const { name } of [...there.attributes])
      if (name !== "open" && !made.hasAttribute(name)) there.removeAttribute(name); // a user's
    for (const { name, value } of made.attributes)
      if (there.getAttribute(name) !== value) there.setAttribute(name, value);
    fill(there, [...made.childNodes]);
  };

  const fill = (element, children) => {
    const before = [...element.childNodes];
    children.forEach((child, place) => {
      const same = ({ nodeName, id }) => nodeName === child.nodeName && id === child.id;
      const found = before.findIndex(same);
      if (found < 0) return void element.insertBefore(child, element.childNodes[place] ?? null);
      const [there] = before.splice(found, 1);
      if (element.childNodes[place] !== there)
        element.insertBefore(there, element.childNodes[place] ?? null);
      update(there, child);
    });
    before.forEach((gone) => gone.remove());
  };

  const draw = (element) => fill(element, JSON.parse(element.dataset.still).map(make));
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

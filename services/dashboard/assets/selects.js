// Ties a native <select data-for=ID> to the hidden field ID, whose value is Dash's, in both directions.
// Dash's own fields for one of several values are no good for screen readers (axe: serious).
(() => {
  document.addEventListener("change", ({ target }) => {
    if (target.matches("select[data-for]"))
      dash_clientside.set_props(JSON.parse(target.dataset.for), { value: target.value });
  });
  const show = ({ target: field }) => {
    const select = document.querySelector(`select[data-for="${CSS.escape(field.id)}"]`);
    if (select) select.value = field.value;
  };
  const options = { subtree: true, attributes: true, attributeFilter: ["value"] };
  new MutationObserver((changes) => changes.forEach(show)).observe(document, options);
})();

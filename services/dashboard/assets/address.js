// Shows the page of the address: the sections of the overview, or those of a workflow.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  address: {
    show(path) {
      const [, name] = (path || "").match(/^\/workflow\/([^/]+)/) || [];
      document.title = name ? `${decodeURIComponent(name)} - Chiron` : "Chiron";
      if (!location.hash) scrollTo(0, 0);
      return name ? "one" : "all";
    },
  },
});

// A click on a link with data-page loads nothing; with a key or another button it is the browser's.
document.addEventListener("click", (event) => {
  const page = event.target.closest("[data-page]")?.dataset.page;
  if (!page || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  dash_clientside.set_props("address", { pathname: page });
});

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

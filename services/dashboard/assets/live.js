// Asks for news of what is deployed only while somebody can see a section that shows some.
(() => {
  const SHOWING = ["live", "wraps", "executions", "watch"];
  const inView = new Set();
  const tell = () => {
    const seen = inView.size > 0 && !document.hidden;
    window.dash_clientside.set_props("live-tick", { disabled: !seen });
    if (seen) window.dash_clientside.set_props("live-seen", { data: Date.now() });
  };
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries)
      inView[isIntersecting ? "add" : "delete"](target.id);
    tell();
  });
  const begin = () => {
    const sections = SHOWING.map((name) => document.getElementById(name));
    if (sections.includes(null)) return window.requestAnimationFrame(begin);
    for (const section of sections) observer.observe(section);
    document.addEventListener("visibilitychange", tell);
  };
  begin();
})();

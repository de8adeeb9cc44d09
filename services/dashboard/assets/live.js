// The section Live asks for news only while somebody can see it.
(() => {
  let inView = false;
  const tell = () => {
    const seen = inView && !document.hidden;
    window.dash_clientside.set_props("live-tick", { disabled: !seen });
    if (seen) window.dash_clientside.set_props("live-seen", { data: Date.now() });
  };
  const observer = new IntersectionObserver((entries) => {
    inView = entries[entries.length - 1].isIntersecting;
    tell();
  });
  const begin = () => {
    const section = document.getElementById("live");
    if (!section) return window.requestAnimationFrame(begin);
    observer.observe(section);
    document.addEventListener("visibilitychange", tell);
  };
  begin();
})();

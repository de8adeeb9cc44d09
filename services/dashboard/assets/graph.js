// Fits the graph into its place whenever that gets another size: it is shown, or a phone is turned.
(() => {
  const observer = new ResizeObserver(() => {
    const graph = document.getElementById("graph")?._cyreg?.cy;
    if (!graph || !graph.container().clientWidth) return;
    graph.resize();
    graph.fit(undefined, 20);
  });
  const begin = () => {
    const canvas = document.getElementById("canvas");
    if (canvas) observer.observe(canvas);
    else window.requestAnimationFrame(begin);
  };
  begin();
})();

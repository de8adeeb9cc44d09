// Widens the timeline, keeps the time in its middle there, and shows as many marks as have room.
(() => {
  const room = 70; // pixels of a mark
  const show = () => {
    const gantt = document.getElementById("gantt");
    const zoom = document.getElementById("zoom");
    if (!gantt || !zoom) return;
    const label = gantt.querySelector(".label");
    const shown = gantt.clientWidth - (label ? label.clientWidth : 0);
    const before = gantt.style.getPropertyValue("--zoom") || "1";
    const middle = (gantt.scrollLeft + shown / 2) / before;
    gantt.style.setProperty("--zoom", zoom.value);
    if (before !== zoom.value) gantt.scrollLeft = middle * zoom.value - shown / 2;
    const marks = gantt.querySelectorAll(".mark");
    const at = (mark) => parseFloat(mark.textContent);
    if (marks.length < 2) return;
    const distance = at(marks[1]) - at(marks[0]);
    const least = (distance * marks.length * room) / Math.max(1, shown * zoom.value);
    const power = 10 ** Math.floor(Math.log10(least));
    const round = power * ([1, 2, 5].find((digit) => digit * power >= least) || 10);
    const isRound = (value) => Math.abs(value - Math.round(value)) < 1e-6;
    marks.forEach((mark) => (mark.hidden = !isRound(at(mark) / Math.max(round, distance))));
  };
  document.addEventListener("input", (event) => event.target.id === "zoom" && show());
  addEventListener("resize", show);
  new MutationObserver((changes) => {
    if (changes.some((change) => change.target.id === "gantt")) show();
  }).observe(document.documentElement, { childList: true, subtree: true });
})();

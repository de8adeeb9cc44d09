// Draws the rows of a timeline, and zooms.
(() => {
  const ROOM = 70; // pixels of a mark

  const element = (name, attributes = {}, children = []) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const bar = (found) => {
    const made = element("div", { class: `bar ${found.source} ${found.kind}`, title: found.tooltip });
    made.style.left = `${found.left}%`;
    made.style.width = `${found.width}%`;
    const stops = found.parts.map(([kind, low, high]) => `var(--${kind}) ${low}% ${high}%`);
    if (stops.length) made.style.backgroundImage = `linear-gradient(to right, ${stops.join()})`;
    return made;
  };

  const row = (label, kind, inside) =>
    element("div", { class: kind }, [
      element("div", { class: "label", title: label }, [label]),
      element("div", { class: "track" }, inside),
    ]);

  const rows = (found) => {
    const marks = found.marks.map(([left, shown]) => {
      const mark = element("span", { class: "mark" }, [`${shown} ms`]);
      mark.style.left = `${left}%`;
      return mark;
    });
    const drawn = found.rows.map((each) =>
      row(each.label, each.heading ? "heading" : "", each.bars.map(bar)),
    );
    // Screen readers have the table.
    return element("div", { class: "rows", "aria-hidden": "true" }, [row("", "", marks), ...drawn]);
  };

  // Widens the rows, keeps the time in their middle there, and shows as many marks as have room.
  const show = () => {
    const gantt = document.getElementById("gantt");
    const marks = [...gantt.querySelectorAll(".mark")];
    const zoom = document.getElementById("zoom").value;
    const before = gantt.style.getPropertyValue("--zoom") || "1";
    gantt.style.setProperty("--zoom", zoom);
    if (marks.length < 2) return;
    const shown = gantt.clientWidth - gantt.querySelector(".label").clientWidth;
    const middle = (gantt.scrollLeft + shown / 2) / before;
    if (before !== zoom) gantt.scrollLeft = middle * zoom - shown / 2;
    const at = (mark) => parseFloat(mark.textContent);
    const distance = at(marks[1]) - at(marks[0]);
    const least = (distance * marks.length * ROOM) / Math.max(1, shown * zoom);
    const power = 10 ** Math.floor(Math.log10(least));
    const round = power * ([1, 2, 5].find((digit) => digit * power >= least) || 10);
    const isRound = (value) => Math.abs(value - Math.round(value)) < 1e-6;
    for (const mark of marks) mark.hidden = !isRound(at(mark) / Math.max(round, distance));
  };

  document.addEventListener("input", (event) => event.target.id === "zoom" && show());
  addEventListener("resize", show);
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    timeline: {
      draw(found) {
        document.getElementById("gantt").replaceChildren(...(found ? [rows(found)] : []));
        requestAnimationFrame(show); // when it is no longer hidden
        return !found;
      },
    },
  });
})();

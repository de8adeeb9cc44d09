// Marks the SLO and the plan that is shown in the graph of other plans.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  front: {
    mark(front, slo, plan) {
      const hidden = { display: "none" };
      if (!front) return [hidden, hidden];
      const place = (value, [low, high]) => (100 * Math.log(value / low)) / Math.log(high / low);
      const { latency_ms: latency, cpus } = front.bounds;
      const x = place(slo, latency);
      const predicted = plan && plan.predicted;
      const judged = predicted && (predicted.within?.ms ?? predicted.latency_ms);
      return [
        x >= 0 && x <= 100 ? { left: `${x}%` } : hidden,
        predicted
          ? { left: `${place(judged, latency)}%`, bottom: `${place(plan.cpus, cpus)}%` }
          : hidden,
      ];
    },
  },
});

// Cancels the job at the location that a button has in data-cancel, and asks how the jobs are then.
// refused.js says what the server says against it.
document.addEventListener("click", async ({ target }) => {
  const job = target.closest("[data-cancel]")?.dataset.cancel;
  if (!job) return;
  await fetch(job, { method: "DELETE" });
  dash_clientside.set_props("tick", { n_intervals: Date.now() });
});

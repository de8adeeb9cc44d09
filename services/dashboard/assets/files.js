// Reads files and folders that are chosen or dropped on the page, for the store "dropped".
// dcc.Upload drops what is too large without a word, and the paths of a chosen folder.
(() => {
  let input; // kept, as some browsers forget one that nothing refers to

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choose]");
    if (!button) return;
    input = document.createElement("input");
    input.type = "file";
    input.multiple = true;
    input.webkitdirectory = button.dataset.choose === "folder";
    input.onchange = () =>
      give([...input.files].map((file) => [file.webkitRelativePath || file.name, file]));
    input.click();
  });

  // Beside the marked place, too: the browser would leave the page for the file.
  for (const kind of ["dragover", "drop"])
    document.addEventListener(kind, (event) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault();
    });
  document.addEventListener("drop", async (event) => {
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    const entries = items.map((item) => item.webkitGetAsEntry()); // gone after the first await
    const found = [];
    for (const entry of entries) await walk(entry, "", found);
    if (entries.length) give(found);
  });

  const skipped = (name) => bounds().skipped.split(" ").includes(name);
  const bounds = () => document.getElementById("files").dataset;

  async function walk(entry, above, found) {
    const name = above + entry.name;
    if (entry.isFile) {
      found.push([name, await new Promise((done) => entry.file(done, () => done(null)))]);
    } else if (!skipped(entry.name)) {
      const reader = entry.createReader();
      const some = () => new Promise((done) => reader.readEntries(done, () => done([])));
      for (let inner = await some(); inner.length; inner = await some()) // some hundred at a time
        for (const each of inner) await walk(each, `${name}/`, found);
    }
  }

  async function give(files) {
    const wanted = files.filter(([name]) => !name.split("/").slice(0, -1).some(skipped));
    const size = wanted.reduce((sum, [, file]) => sum + (file ? file.size : 0), 0);
    const contents = [];
    if (size <= Number(bounds().most))
      for (const [, file] of wanted) contents.push(file ? await base64(file) : null);
    const data = { names: wanted.map(([name]) => name), contents, size };
    dash_clientside.set_props("dropped", { data });
  }

  const base64 = (file) =>
    new Promise((done) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
      reader.onerror = () => done(null);
      reader.readAsDataURL(file);
    });
})();

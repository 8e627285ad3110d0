(() => {
// The address bar holds the state of the page's controls; tables sort themselves; light and dark are remembered.
window.automedbench = {
  remember(names, values) {
    const query = new URLSearchParams(location.search);
    names.forEach((name, i) => {
      const value = values[i];
      const text = Array.isArray(value) ? value.join(",") : value === null || value === undefined ? "" : String(value);
      if (text && text !== "false") query.set(name, text);
      else query.delete(name);
    });
    this.show(query);
  },

  show(query) {
    const text = query.toString().replaceAll("%2C", ",");
    history.replaceState(history.state, "", location.pathname + (text ? "?" + text : "") + location.hash);
  },

  // Sort by a column. What is missing stands last in both directions.
  sort(table, key, descending) {
    const heads = [...table.tHead.querySelectorAll("th")];
    const place = heads.findIndex((head) => head.dataset.key === key);
    if (place < 0) return;
    heads.forEach((head, i) => {
      if (i === place) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const value = (row) => row.cells[place].dataset.sort ?? "";
    const numbers = heads[place].dataset.kind === "number";
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const way = numbers ? Number(x) - Number(y) : x.localeCompare(y);
      return descending ? -way : way;
    };
    const body = table.tBodies[0];
    [...body.rows].sort(order).forEach((row) => body.append(row));
  },

  // A table that came anew takes the order that the address names.
  restore(table) {
    table.dataset.restored = "1";
    const wanted = new URLSearchParams(location.search).get("sort");
    if (wanted) this.sort(table, wanted.replace(/^-/, ""), wanted.startsWith("-"));
  },

  clicked(button) {
    const head = button.closest("th");
    const table = button.closest("table");
    const now = head.getAttribute("aria-sort");
    const descending = now ? now === "ascending" : head.dataset.first !== "up";
    this.sort(table, head.dataset.key, descending);
    const query = new URLSearchParams(location.search);
    query.set("sort", (descending ? "-" : "") + head.dataset.key);
    this.show(query);
  },

  // The reader's own choice of light or dark; it stands whatever the system says.
  wanted: null,

  theme(name) {
    this.wanted = name;
    this.keepTheme();
    try { localStorage.setItem("automedbench-theme", name); } catch { /* a browser that remembers nothing */ }
  },
};

window.automedbench.keepTheme = function () {
  const dark = this.wanted === "dark";
  if (this.wanted && document.body.classList.contains("dark") !== dark) document.body.classList.toggle("dark", dark);
};

// On a phone the navigation is wider than the page: the open page's name is brought into sight when it is there.
window.automedbench.showPlace = function () {
  const here = document.querySelector(".amb-nav [aria-current]");
  if (!here || here.dataset.shown) return;
  here.dataset.shown = "1";
  here.parentElement.scrollLeft = here.offsetLeft - (here.parentElement.clientWidth - here.offsetWidth) / 2;
};

document.addEventListener("click", (event) => {
  const sorter = event.target.closest("[data-sorts]");
  if (sorter) window.automedbench.clicked(sorter);
  if (event.target.closest("[data-theme-switch]"))
    window.automedbench.theme(document.body.classList.contains("dark") ? "light" : "dark");
});

// The page may be there already when this script comes.
const start = () => {
  const named = new URLSearchParams(location.search).get("__theme");
  try { window.automedbench.wanted = named ? null : localStorage.getItem("automedbench-theme"); } catch { /* as above */ }
  window.automedbench.keepTheme();
  window.automedbench.showPlace();
  new MutationObserver(() => window.automedbench.keepTheme())
    .observe(document.body, { attributes: true, attributeFilter: ["class"] });
  new MutationObserver(() => {
    window.automedbench.showPlace();
    document.querySelectorAll("table[data-sortable]:not([data-restored])")
      .forEach((table) => window.automedbench.restore(table));
  }).observe(document.body, { childList: true, subtree: true });
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
})();

"use strict";
for (const box of document.querySelectorAll(".queries")) {
  const list = box.querySelector("ol"), items = [...list.children];
  const search = box.querySelector("input"), select = box.querySelector("select");
  const change = new Map(items.map((item) => [item, Number(item.dataset.change)]));
  const text = new Map(items.map((item) => [item, item.querySelector("summary").textContent.toLowerCase()]));
  const id = new Map(items.map((item) => [item, item.querySelector("summary b").textContent.toLowerCase()]));
  const orders = {
    size: (a, b) => Math.abs(change.get(b)) - Math.abs(change.get(a)),
    gain: (a, b) => change.get(b) - change.get(a),
    loss: (a, b) => change.get(a) - change.get(b),
    order: () => 0,
  };
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const whole = search.value.trim().toLowerCase();
    for (const item of items) {
      item.hidden = id.get(item) !== whole && !words.every((word) => text.get(item).includes(word));
    }
    list.append(...items.toSorted(orders[select.value]));
    const shown = items.filter((item) => !item.hidden).length;
    box.querySelector("[role=status]").textContent = `${shown} of ${items.length} queries`;
  };
  search.addEventListener("input", show);
  select.addEventListener("change", show);
  box.querySelector(".tools").hidden = false;
  show();
}

// Columns sort by a click on their names: up, down, and as they were.
const number = (text) => Number(text.replace(/[<+%,\s]/g, "") || NaN);
for (const table of document.querySelectorAll(".wide > table")) {
  const rows = [...(table.tBodies[0]?.rows ?? [])];
  // Rows that are set in belong to the row above them.
  if (!table.tHead || rows.length < 2 || table.closest(".pair") || rows.some((row) => /^\s/.test(row.cells[0].textContent))) continue;
  for (const head of table.tHead.rows[0].cells) {
    const column = head.cellIndex;
    if (!head.textContent) continue;
    const texts = new Map(rows.map((row) => [row, row.cells[column].textContent]));
    const full = rows.filter((row) => texts.get(row)), empty = rows.filter((row) => !texts.get(row));
    const numeric = full.every((row) => !Number.isNaN(number(texts.get(row))));
    const compare = numeric
      ? (a, b) => number(texts.get(a)) - number(texts.get(b))
      : (a, b) => texts.get(a).localeCompare(texts.get(b), "en", { numeric: true });
    const orders = {
      ascending: () => [...full.toSorted(compare), ...empty],
      descending: () => [...full.toSorted((a, b) => compare(b, a)), ...empty],
      none: () => rows,
    };
    const cycle = numeric ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = cycle[(cycle.indexOf(head.ariaSort ?? "none") + 1) % 3];
      for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
      head.ariaSort = order;
      table.tBodies[0].append(...orders[order]());
    });
  }
}

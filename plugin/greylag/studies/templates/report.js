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

"use strict";
const units = [[7200, 3600, "h"], [120, 60, "min"], [1, 1, "s"], [1e-3, 1e-3, "ms"], [1e-6, 1e-6, "us"], [0, 1e-9, "ns"]];
const duration = s => {
  const [, size, unit] = units.find(([from]) => s >= from);
  return (s / size).toPrecision(3) + " " + unit;
};
for (const box of document.querySelectorAll(".payoff")) {
  const costs = JSON.parse(box.dataset.costs), paid = JSON.parse(box.dataset.even), slider = box.querySelector("input[type=range]");
  const show = () => {
    const start = box.querySelector("input[type=radio]:checked").value;
    const n = Math.round(10 ** slider.value), total = e => costs[e].once[start] + n * costs[e].call.value;
    box.querySelector(".count").textContent = n.toLocaleString("en");
    for (const chart of box.querySelectorAll("[data-start]")) {
      chart.hidden = chart.dataset.start !== start;
      for (const marker of chart.querySelectorAll(".marker")) {
        const x = +marker.dataset.left + (marker.dataset.right - marker.dataset.left) * slider.value / slider.max;
        marker.setAttribute("x1", x); marker.setAttribute("x2", x);
      }
    }
    const [a, b] = [total("dynamic"), total("static")], saved = costs.dynamic.call.value - costs.static.call.value;
    const extra = costs.static.once[start] - costs.dynamic.once[start];
    const even = start in paid ? paid[start] ?? Infinity : extra <= 0 ? 0 : saved > 0 ? Math.ceil(extra / saved) : Infinity;
    const winner = Math.max(a / b, b / a) < 1.05 ? "Both take as long in all" : b <= a ? `static: ${(a / b).toFixed(1)}x as fast in all` : `dynamic: ${(b / a).toFixed(1)}x as fast in all`;
    box.querySelector(".answer").textContent = `${winner}. dynamic takes ${duration(a)}, static ${duration(b)}. `
      + (even === Infinity ? "Compiling never pays off." : even === 0 ? "Compiling pays off at once." : `Compiling pays off after ${even.toLocaleString("en")} calls.`);
  };
  box.addEventListener("input", show);
  show();
}
const words = (element, name) => (element.dataset[name] || "").split(" ").filter(Boolean);
for (const page of document.querySelectorAll(".program")) {
  const items = [...page.querySelectorAll("[data-n], [data-l]")].map(element =>
    ({element, nodes: new Set(words(element, "n")), lines: new Set(words(element, "l"))}));
  const light = element => {
    const own = element && items.find(item => item.element === element);
    for (const item of items) {
      const related = own && ([...own.nodes].some(n => item.nodes.has(n))
        || ((!own.nodes.size || !item.nodes.size) && [...own.lines].some(l => item.lines.has(l))));
      item.element.classList.toggle("lit", Boolean(related));
    }
  };
  for (const event of ["mouseover", "focusin"])
    page.addEventListener(event, e => light(e.target.closest("[data-n], [data-l]")));
  page.addEventListener("mouseleave", () => light(null));
}

// The figures of the plans side by side.

function summaryTable(plans) {
  const first = plans[0].columns;
  const oneGraph = plans.every((plan) => plan.columns.graph === first.graph);
  const hasDifference = plans.length === 2;
  const row = (title, keepAll, value, difference) => {
    const cells = oneGraph ? [element("td", {class: "number"}, keepAll)] : [];
    cells.push(...plans.map((plan) => element("td", {class: "number"}, value(plan))));
    if (hasDifference) cells.push(element("td", {class: "number"}, difference ? difference(plans[0], plans[1]) : ""));
    return element("tr", {}, element("th", {scope: "row"}, title), ...cells);
  };
  const change = (plan) => (plan.columns.keep_all_peak > 0 ? plan.peak / plan.columns.keep_all_peak - 1 : 0);
  const rows = [
    row("Peak of activations", bytesText(first.keep_all_peak), (plan) => bytesText(plan.peak), (a, b) => signedBytesText(b.peak - a.peak)),
    plans.some((plan) => plan.others > 0)
      ? row("… of other micro-batches", bytesText(plans[0].keepAllOthers), (plan) => bytesText(plan.others), (a, b) => signedBytesText(b.others - a.others)) : null,
    row("… against keeping all", "", (plan) => signedPercent(change(plan))),
    row("… with constants", bytesText(first.keep_all_peak + first.constants), (plan) => bytesText(plan.peak + plan.columns.constants)),
    row("Budget", "", (plan) => (plan.columns.budget === null ? "none" : bytesText(plan.columns.budget))),
    row("Time added to a step", "0.0%", (plan) => signedPercent(plan.addedShare), (a, b) => `${signedPercent(b.addedShare - a.addedShare).replace("%", "")} points`),
    plans.some((plan) => plan.columns.least_added_cost !== null) ? row("… no plan adds less than", "", leastTime) : null,
    plans.some((plan) => plan.columns.least_peak !== null) ? row("… no plan peaks below", "", leastPeak) : null,
    row("Run again", "0", (plan) => String(countReruns(plan)), (a, b) => signedCount(countReruns(b) - countReruns(a))),
    row("In one block of memory", "", (plan) => bytesText(plan.columns.arena)),
  ];
  const titles = [[""], ...(oneGraph ? [["Keep all", "number"]] : []),
    ...plans.map((plan) => [plans.length > 1 ? plan.title : plan.columns.name, "number"]), ...(hasDifference ? [["B − A", "number"]] : [])];
  return element("div", {class: "scroll-x"}, element("table", {class: "summary"}, element("thead", {}, headRow(titles)), element("tbody", {}, ...rows.filter(Boolean))));
}

function countReruns(plan) {
  return plan.columns.reruns.filter((count) => count > 0).length;
}

function signedCount(count) {
  return count > 0 ? `+${count}` : String(count);
}

function leastTime(plan) {
  const {least_added_cost: least, step_cost: step} = plan.columns;
  return least === null || step <= 0 ? "–" : signedPercent(least / step);
}

function leastPeak(plan) {
  return plan.columns.least_peak === null ? "–" : bytesText(plan.columns.least_peak);
}

// Describes how each plan was made: "best, proven optimal: optimal among ...; N=64; cost model flops:a100-40g".
function summaryLines(plans) {
  return plans.map((plan) => {
    const {columns} = plan;
    const settings = pairs(columns.settings).map(([name, text]) => `${name} ${text}`);
    const status = columns.is_optimal ? "proven optimal" : "";
    const text = [[columns.algorithm, status, columns.guarantee].filter(Boolean).join(", "), ...settings].join(" · ");
    return element("p", {class: "quiet"}, plans.length > 1 ? element("strong", {}, `${plan.title}: `) : null, text);
  });
}

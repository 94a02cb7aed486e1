// The figures of the plans: those that matter in one line, all others below it on request.

// Returns the figures that are shown first, as {label, value, note}.
function keyFigures(plan) {
  const {columns} = plan;
  const change = columns.keep_all_peak > 0 ? plan.peak / columns.keep_all_peak - 1 : 0;
  const hasBudget = columns.budget !== null;
  return [
    {label: "Peak", value: bytesText(plan.peak), note: `${signedPercent(change)}; keeping all needs ${bytesText(columns.keep_all_peak)}`},
    {label: "Time", value: signedPercent(plan.addedShare), note: "added to a training step"},
    {label: "Budget", value: hasBudget ? bytesText(columns.budget) : "none", note: hasBudget && columns.budget > 0 ? `${percent(plan.peak / columns.budget)} used` : ""},
    {label: "Proof", ...proofOf(plan)},
  ];
}

// Tells how much less time another plan within the budget could add.
function proofOf(plan) {
  const {is_optimal: isOptimal, least_added_cost: least, bound_scope: scope, step_cost: step, added_cost: added} = plan.columns;
  if (least === null || step <= 0) return isOptimal ? {value: "optimal", note: "in the algorithm's class of plans"} : {value: "none", note: "by this algorithm"};
  const gap = (added - least) / step;
  if (gap <= 0) return {value: "optimal", note: `no plan ${scope} adds less`.replace("  ", " ")};
  return {value: `gap ${(100 * gap).toFixed(2)}%`, note: `any plan ${scope} adds ${signedPercent(least / step)} or more`.replace("  ", " ")};
}

// One plan has a list of figures, several have a table.
function keyFiguresOf(plans) {
  if (plans.length > 1) return keyTable(plans);
  return element("dl", {class: "figures"}, ...keyFigures(plans[0]).map(({label, value, note}) => element("div", {}, element("dt", {}, label),
    element("dd", {}, element("strong", {}, value), " ", element("span", {class: "quiet"}, unbroken(note))))));
}

function keyTable(plans) {
  const row = (name, cells) => element("tr", {}, element("th", {scope: "row"}, ...name), ...cells.map((cell) => element("td", {class: "number"}, cell)));
  const {columns: first} = plans[0];
  const rows = plans.map((plan) => row([letterOf(plan), element("span", {class: "spare"}, ...breakable(plan.columns.name))], keyFigures(plan).map(({value}) => value)));
  if (plans.every((plan) => plan.columns.graph === first.graph)) rows.unshift(row(["keep all"], [bytesText(first.keep_all_peak), "0.0%", "", ""]));
  if (plans.length === 2) rows.push(row(["B − A"], [signedBytesText(plans[1].peak - plans[0].peak), pointsBetween(...plans), "", ""]));
  return element("div", {class: "scroll-x"}, element("table", {class: "figures"},
    element("thead", {}, headRow([["Plan"], ...keyFigures(plans[0]).map(({label}) => [label, "number"])])), element("tbody", {}, ...rows)));
}

function letterOf(plan) {
  return element("span", {class: "letter"}, plan.letter);
}

function pointsBetween(a, b) {
  return `${signedPercent(b.addedShare - a.addedShare).replace("%", "")} points`;
}

// Returns the table of all figures.
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
    row("Time added to a step", "0.0%", (plan) => signedPercent(plan.addedShare), pointsBetween),
    plans.some((plan) => plan.columns.least_added_cost !== null) ? row("… no plan adds less than", "", leastTime) : null,
    plans.some((plan) => plan.columns.least_peak !== null) ? row("… no plan peaks below", "", leastPeak) : null,
    row("Run again", "0", (plan) => String(countReruns(plan)), (a, b) => signedCount(countReruns(b) - countReruns(a))),
    row("In one block of memory", "", (plan) => bytesText(plan.columns.arena)),
  ];
  const titles = [[""], ...(oneGraph ? [["Keep all", "number"]] : []),
    ...plans.map((plan) => [breakable(plans.length > 1 ? plan.title : plan.columns.name), "number"]), ...(hasDifference ? [["B − A", "number"]] : [])];
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

// Returns, for each plan, how it was made: "best: optimal among ...", "N=64", "cost model flops:a100-40g".
function howMade(plans) {
  return plans.map((plan) => {
    const {algorithm, guarantee, settings} = plan.columns;
    const items = [[algorithm, guarantee].filter(Boolean).join(": "), ...settings];
    return element("div", {}, plans.length > 1 ? element("h3", {}, plan.title) : null, element("p", {}, items.join(" · ")));
  });
}

function summaryOf(plans) {
  return [keyFiguresOf(plans), element("details", {class: "all-figures"}, element("summary", {}, "All figures, and how the plan was made"),
    summaryTable(plans), ...howMade(plans))];
}

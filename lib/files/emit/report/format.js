// Texts and elements that all parts of the page use.

// The kinds of memory as styles; what readers see is PlanData.kindName.
const KINDS = ["kept", "passing", "recomputed", "gradients", "workspace", "loaded"];
const PHASE_NAMES = {f: "forward", r: "run again", l: "loss", b: "backward", x: "release", o: "copy out", d: "drop", i: "copy back"};
const ACTIONS = {k: "keep", r: "recompute", t: "transient", d: "drop"};
const LETTERS = "ABCDEFGH";

// Formats sizes as the program does: binary units with two decimals.
function bytesText(bytes) {
  const size = Math.abs(bytes);
  if (size < 1024) return `${bytes} B`;
  let unit = 0;
  let value = bytes / 1024;
  while (Math.abs(value) >= 1023.995 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return `${value.toFixed(2)} ${["KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

// Formats a round size, as at the ticks of an axis, without needless decimals.
function roundBytesText(bytes) {
  const text = bytesText(bytes);
  return bytes === 0 ? "0" : text.includes(".") ? text.replace(/\.?0+ /, " ") : text;
}

// Returns the distance of round ticks, a power of two, of which at most `most` fit into `bytes`.
function bytesStride(bytes, most) {
  let stride = 1;
  while (bytes / stride > most) stride *= 2;
  return stride;
}

// Keeps each number in a sentence in the line of its unit.
function unbroken(text) {
  return text.replace(/(\d) (?=([KMGTP]i)?B\b)/g, "$1\u00a0");
}

function signedBytesText(bytes) {
  return bytes > 0 ? `+${bytesText(bytes)}` : bytesText(bytes);
}

// Formats a share of one as a percentage with its sign.
function signedPercent(share) {
  const text = (100 * share).toFixed(1);
  if (Number(text) === 0) return "0.0%";
  return `${share > 0 ? "+" : ""}${text}%`;
}

// Formats a round share, as at the ticks of an axis.
function roundPercent(share) {
  return signedPercent(share).replace(".0%", "%");
}

function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}

// Formats costs: nanoseconds get a suitable unit, other units stay as they are.
function costText(cost, unit) {
  if (unit !== "ns") return `${cost} ${unit}`.trim();
  if (cost < 1e3) return `${cost} ns`;
  if (cost < 1e6) return `${(cost / 1e3).toFixed(1)} µs`;
  if (cost < 1e9) return `${(cost / 1e6).toFixed(1)} ms`;
  return `${(cost / 1e9).toFixed(2)} s`;
}

// Makes element("p", {class: "quiet"}, "text", child): names from outside become text, never markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  setAttributes(made, attributes);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(made, attributes);
  made.append(...children);
  return made;
}

function setAttributes(target, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      target.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== false) {
      target.setAttribute(name, value === true ? "" : value);
    }
  }
}

function announce(text) {
  document.getElementById("announcement").textContent = text;
}

// Returns the smallest of 1, 2, 5, 10, 20, ... of which at most `most` fit into `range`.
function roundStride(range, most) {
  for (let power = 1;; power *= 10) {
    for (const stride of [power, 2 * power, 5 * power]) {
      if (range / stride <= most) return stride;
    }
  }
}

// Returns the last index whose value in the ascending list is at most `value`.
function lastAtMost(ascending, value) {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

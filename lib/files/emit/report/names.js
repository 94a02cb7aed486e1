// Names of tensors, nodes and modules, in the room that they have. The whole name is in the title of its element.

// Shortens a long name to its beginning and its end, or to the part that says which stage it is of, and its end.
function elided(text, most) {
  if (text.length <= most) return text;
  if (most < 3) return "…";
  const head = Math.floor(most / 3);
  const [begin, end] = stageOf(text);
  return (end > head && stageAndEnd(text, begin, end, most)) || `${text.slice(0, head)}…${text.slice(head + 1 - most)}`;
}

// Returns where the first part with a digit begins and ends, "layer.3/" in "encoder/layer.3/attention"; a number alone has
// the part before it. [0, 0] if there is none.
function stageOf(name) {
  const found = name.match(/(?:[^/.]*[/.])??[^/.\d]*\d[^/.]*[/.]/);
  if (!found) return [0, 0];
  const parts = found[0].split(/(?<=[/.])/);
  const isNumber = /^\d+[/.]$/.test(parts.at(-1));
  const stage = isNumber ? found[0] : parts.at(-1);
  const end = found.index + found[0].length;
  return [end - stage.length, end];
}

// Returns "" if the end would be less than the last part.
function stageAndEnd(text, begin, end, most) {
  if (text.length - begin < most) return `…${text.slice(1 - most)}`;
  const shown = `${begin > 0 ? "…" : ""}${text.slice(begin, end)}…`;
  const last = text.length - text.search(/[^/.]*[/.]?$/);
  const room = most - shown.length;
  return room >= last ? shown + text.slice(-room) : "";
}

// Shortens each text to `most` characters. Different texts stay different: those that would become equal
// keep the parts, between slashes or dots, in which they differ.
function elidedApart(texts, most) {
  const short = texts.map((text) => elided(text, most));
  for (const group of equalButDifferent(texts, short)) {
    const parts = group.map((text) => text.split(/(?<=[/.])/));
    const replaced = new Map(group.map((text, i) => [text, withoutCommonParts(parts[i], commonParts(parts[i], parts), most)]));
    texts.forEach((text, i) => { short[i] = replaced.get(text) ?? short[i]; });
  }
  return short;
}

// Returns the groups of different texts that have become equal.
function equalButDifferent(texts, short) {
  const groups = new Map();
  short.forEach((key, i) => {
    if (!groups.has(key)) groups.set(key, new Set());
    groups.get(key).add(texts[i]);
  });
  return [...groups.values()].filter((group) => group.size > 1).map((group) => [...group]);
}

// Tells of each part whether all names have it, at the same distance from the beginning or from the end.
function commonParts(parts, all) {
  return parts.map((part, i) => all.every((other) => other[i] === part) || all.every((other) => other.at(i - parts.length) === part));
}

// Leaves out parts until the name is short enough: the common ones, then those that the next part repeats, as "layer1/" in
// "layer1/layer1.0", each time the first ones first. "…" stands for them. The last part is shortened instead.
function withoutCommonParts(parts, isCommon, most) {
  const last = parts.length - 1;
  const isOut = parts.map(() => false);
  const text = () => parts.map((part, i) => (!isOut[i] ? part : i > 0 && isOut[i - 1] ? "" : "…")).join("");
  for (const mayGo of [(i) => isCommon[i], (i) => parts[i].slice(0, -1) === parts[i + 1].slice(0, -1)]) {
    for (let i = 0; i < last && text().length > most; ++i) isOut[i] ||= mayGo(i);
  }
  const whole = text();
  if (whole.length <= most) return whole;
  const before = whole.slice(0, whole.length - parts[last].length);
  const room = most - before.length;
  if (room >= LEAST_LAST_PART) return before + elided(parts[last], room);
  const rest = isCommon[last] ? `${before.replace(/…$/, "")}…` : whole;
  return rest.length <= most ? rest : `…${rest.slice(rest.length - most + 1).replace(/^…/, "")}`;
}

const LEAST_LAST_PART = 6;  // In characters; less of it says nothing.

// Returns how many characters of a name fit into a width; names have a font in which all are equally wide.
function charactersIn(width) {
  charactersIn.context ??= document.createElement("canvas").getContext("2d");
  charactersIn.context.font = NAME_FONT;
  return Math.max(Math.floor(width / charactersIn.context.measureText("0").width), 8);
}

const NAME_FONT = "12.5px ui-monospace, monospace";  // As in page.css.

// Returns a name that may continue in the next line after its dots, dashes, slashes and underscores.
function breakable(name) {
  const parts = name.split(/(?<=[._/-])/);
  return parts.flatMap((part, i) => (i === 0 ? [part] : [element("wbr"), part]));
}

// Divides what is in memory among modules. The largest modules are divided into their submodules, as long as there are at most
// `most` rows. Of submodules that are too many, those that differ only by a number are one row: "layers.*" for "layers.0" to
// "layers.31".

// `parts` are {chain, bytes}: the modules around something, the outermost first. Returns {path, count, bytes}, the largest
// first; `count` is the number of modules in a row, and `path` is empty for what is in no module.
function moduleShares(parts, most) {
  const all = {path: "", members: parts.map((part) => ({...part, depth: 0}))};
  let rows = submodules(all, false);
  if (rows.length > most) rows = submodules(all, true);
  for (;;) {
    const row = rows.filter((each) => !each.isWhole).sort(byBytes)[0];
    if (!row) return rows.sort(byBytes).map(({path, count, bytes}) => ({path, count, bytes}));
    const room = most - rows.length + 1;
    const divided = fewSubmodules(row, room);
    if (divided.length > 0) rows.splice(rows.indexOf(row), 1, ...divided);
    else row.isWhole = true;
  }
}

function byBytes(a, b) {
  return b.bytes - a.bytes || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
}

// Returns at most `most` rows for the submodules, of which those that differ only by a number are one row if there is no room for
// all; none if that is not enough.
function fewSubmodules(row, most) {
  let rows = submodules(row, false);
  if (rows.length > most) rows = submodules(row, true);
  // One row for all submodules says no more than the row of the module does.
  if (rows.length === 1 && rows[0].count > 1 && !rows[0].isWhole) rows = fewSubmodules(rows[0], most);
  return rows.length <= most ? rows : [];
}

// Returns a row for each submodule, and one for what is in the module but in none of them.
function submodules(row, mergesNumbers) {
  const found = new Map();
  for (const member of row.members) {
    const isOwn = member.depth === member.chain.length;
    const path = isOwn ? row.path : pathWithin(row.path, member, mergesNumbers);
    const key = `${isOwn} ${path}`;
    if (!found.has(key)) found.set(key, {path, isWhole: isOwn, bytes: 0, members: [], modules: new Set()});
    const child = found.get(key);
    child.bytes += member.bytes;
    child.members.push({...member, depth: member.depth + (isOwn ? 0 : 1)});
    child.modules.add(member.chain[isOwn ? member.depth - 1 : member.depth]);
  }
  return [...found.values()].map((child) => {
    const [only] = child.modules;
    return {...child, count: child.modules.size, path: child.modules.size > 1 || child.isWhole ? child.path : only};
  });
}

// Returns the path of the member's next module below `path`, which may have "*" for numbers.
function pathWithin(path, {chain, depth}, mergesNumbers) {
  const outer = depth > 0 ? chain[depth - 1] : "";
  const rest = chain[depth].startsWith(outer) ? chain[depth].slice(outer.length) : null;
  const added = rest ?? chain[depth];
  const merged = mergesNumbers ? added.replace(/(?<=^|[./])\d+(?=[./]|$)/g, "*") : added;
  return rest === null ? merged : path + merged;
}

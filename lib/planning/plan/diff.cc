#include "lib/planning/plan/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/planning/plan/diff_summary.h"
#include "lib/planning/plan/structural_match.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

using Row = PlanDigest::Row;

// A node of both plans. Null if a plan does not have it.
struct MatchedRows {
  const PlanDigest::Row* older = nullptr;
  const PlanDigest::Row* newer = nullptr;
  // The paths of its modules; if null or empty, taken from its name.
  const std::vector<std::string>* modules = nullptr;
};

struct RowGroups {
  GroupKind kind = GroupKind::kRun;
  std::vector<std::string> names;
  std::vector<size_t> group_of;  // Indexed by node.
};

constexpr size_t kMaxGroups = 10;
constexpr std::string_view kNoModule = "(no module)";

// Groups in the order of their first nodes.
RowGroups GroupsByName(GroupKind kind, const std::vector<std::string>& name_of_node) {
  RowGroups groups{kind, {}, {}};
  std::map<std::string_view, size_t> by_name;
  for (const std::string& name : name_of_node) {
    const auto [entry, is_new] = by_name.try_emplace(name, groups.names.size());
    if (is_new) groups.names.push_back(name);
    groups.group_of.push_back(entry->second);
  }
  return groups;
}

const Row& LatestRow(const MatchedRows& node) {
  return node.newer != nullptr ? *node.newer : *node.older;
}

std::vector<std::string> ModulesOf(const MatchedRows& node) {
  const bool is_known = node.modules != nullptr && !node.modules->empty();
  return is_known ? *node.modules : ModulesInName(LatestRow(node).name);
}

// Returns nullopt if the outermost level has too many modules, or if one module has all nodes.
std::optional<RowGroups> GroupByModules(const std::vector<MatchedRows>& nodes) {
  std::vector<std::vector<std::string>> chains;
  size_t deepest = 0;
  for (const MatchedRows& node : nodes) {
    chains.push_back(ModulesOf(node));
    deepest = std::max(deepest, chains.back().size());
  }
  std::optional<RowGroups> found;
  for (size_t depth = 1; depth <= deepest; ++depth) {
    std::vector<std::string> names;
    for (const std::vector<std::string>& chain : chains) {
      names.push_back(chain.empty() ? std::string(kNoModule)
                                    : chain[std::min(depth, chain.size()) - 1]);
    }
    RowGroups groups = GroupsByName(GroupKind::kModule, names);
    if (groups.names.size() > kMaxGroups) break;
    if (groups.names.size() > 1) found = std::move(groups);
  }
  return found;
}

int64_t SegmentCount(const std::vector<MatchedRows>& nodes, const Row* MatchedRows::*side) {
  int64_t last = 0;
  for (const MatchedRows& node : nodes) {
    if (node.*side != nullptr) last = std::max<int64_t>(last, (node.*side)->decision.segment);
  }
  return last + 1;
}

// Names a group of segments: "segment 4", or "segments 4-7" if several are combined.
std::string NameOfSegments(int64_t segment, int64_t count) {
  // One group is reserved for nodes without a segment.
  const auto groups = static_cast<int64_t>(kMaxGroups) - 1;
  if (count <= groups) return fmt::format("segment {}", segment);
  const int64_t length = (count + groups - 1) / groups;
  const int64_t first = segment / length * length;
  const int64_t last = std::min(first + length, count) - 1;
  return first == last ? fmt::format("segment {}", first)
                       : fmt::format("segments {}-{}", first, last);
}

// Returns nullopt unless a plan has several segments.
std::optional<RowGroups> GroupBySegments(const std::vector<MatchedRows>& nodes) {
  for (const auto side : {&MatchedRows::newer, &MatchedRows::older}) {
    const int64_t count = SegmentCount(nodes, side);
    if (count < 2) continue;
    std::vector<std::string> names;
    for (const MatchedRows& node : nodes) {
      const Row* const row = node.*side;
      names.push_back(row == nullptr ? "(only in the other plan)"
                                     : NameOfSegments(row->decision.segment, count));
    }
    return GroupsByName(GroupKind::kSegment, names);
  }
  return std::nullopt;
}

RowGroups GroupByOrder(const std::vector<MatchedRows>& nodes) {
  const size_t length = (nodes.size() + kMaxGroups - 1) / kMaxGroups;
  RowGroups groups;
  for (size_t begin = 0; begin < nodes.size(); begin += length) {
    const size_t last = std::min(begin + length, nodes.size()) - 1;
    groups.group_of.insert(groups.group_of.end(), last + 1 - begin, groups.names.size());
    const std::string& name = LatestRow(nodes[begin]).name;
    groups.names.push_back(
        begin == last ? name : fmt::format("{} ... {}", name, LatestRow(nodes[last]).name));
  }
  return groups;
}

// Groups nodes to sum up their changes: at most ten groups, so that all can be shown.
//
//   modules    the deepest level with at most ten modules that contain a change
//   segments   for nodes without modules: the newer plan's, or else the older plan's; more than
//              ten are combined, as in "segments 4-7"
//   runs       of consecutive nodes, "conv1 ... relu9", if the plans have no segments
//
// O(n x depth of the modules).
RowGroups GroupRows(const std::vector<MatchedRows>& nodes) {
  if (auto modules = GroupByModules(nodes)) return *std::move(modules);
  if (auto segments = GroupBySegments(nodes)) return *std::move(segments);
  return GroupByOrder(nodes);
}

// Matches unmatched rows by a name. Rows that share a name are matched in order.
void MatchBy(std::string Row::*name, const PlanDigest& older, const PlanDigest& newer,
             RowPartners* partners) {
  std::vector<bool> is_taken(newer.rows.size());
  for (const size_t partner : *partners) {
    if (partner != kNoPartner) is_taken[partner] = true;
  }
  std::map<std::string_view, std::vector<size_t>> left;  // In reverse order.
  for (size_t i = newer.rows.size(); i-- > 0;) {
    if (!is_taken[i]) left[newer.rows[i].*name].push_back(i);
  }
  for (size_t i = 0; i < older.rows.size(); ++i) {
    if ((*partners)[i] != kNoPartner || (older.rows[i].*name).empty()) continue;
    const auto found = left.find(older.rows[i].*name);
    if (found == left.end() || found->second.empty()) continue;
    (*partners)[i] = found->second.back();
    found->second.pop_back();
  }
}

// Matches rows by tensor names, which are unique within a model, then by node names in case a
// tensor was renamed, as the output is when a model is extended. If the models differ, matches the
// remaining nodes by structure.
RowPartners MatchRows(const PlanDigest& older, const PlanDigest& newer, PlanDiff* diff) {
  RowPartners partners(older.rows.size(), kNoPartner);
  MatchBy(&Row::tensor, older, newer, &partners);
  if (!diff->has_same_model) DropWrongNamePairs(older, newer, &partners);
  MatchBy(&Row::name, older, newer, &partners);
  if (diff->has_same_model) return partners;
  DropWrongNamePairs(older, newer, &partners);
  diff->paired_by_structure = static_cast<int64_t>(PairByStructure(older, newer, &partners));
  return partners;
}

bool IsKept(const Row* row) {
  if (row == nullptr || row->decision.action != NodeAction::kKeep) return false;
  return row->moved == Bytes(0) || row->moved < row->bytes;
}
Bytes MovedBy(const Row* row) { return row == nullptr ? Bytes(0) : row->moved; }
int32_t RunsOf(const Row* row) {
  const bool runs = row != nullptr && row->decision.action != NodeAction::kDrop;
  return runs ? row->decision.recompute_count + 1 : 0;
}
Bytes HeldBytes(const Row* row) { return IsKept(row) ? row->bytes - row->moved : Bytes(0); }

Bytes AtPeak(const Row* row) { return row == nullptr ? Bytes(0) : row->at_peak; }

int64_t CountKept(const PlanDigest& digest) {
  return std::count_if(digest.rows.begin(), digest.rows.end(),
                       [](const Row& row) { return IsKept(&row); });
}

bool HaveEqualFigures(const PlanFigures& a, const PlanFigures& b) {
  return a.offload == b.offload &&
         std::tuple(a.peak, a.baseline_peak, a.arena, a.overhead, a.forward_cost,
                    a.backward_cost) == std::tuple(b.peak, b.baseline_peak, b.arena, b.overhead,
                                                   b.forward_cost, b.backward_cost);
}

// Only plans without a budget have a curve.
bool HaveDifferentCurves(const PlanFigures& a, const PlanFigures& b) {
  return !a.curve.empty() && !b.curve.empty() && a.curve != b.curve;
}

Bytes Magnitude(Bytes bytes) { return bytes < Bytes(0) ? Bytes(0) - bytes : bytes; }

// Sorts nodes or groups by changed bytes, largest first.
template <typename Change>
void SortByWorth(std::vector<Change>* changes) {
  const auto key = [](const Change& change) {
    return std::tuple(WorthOf(change.held, change.at_peak), Magnitude(change.at_peak));
  };
  std::stable_sort(changes->begin(), changes->end(), [&](const Change& a, const Change& b) {
    return std::tuple(key(b), std::string_view(a.name)) <
           std::tuple(key(a), std::string_view(b.name));
  });
}

// Collects changes, and the part of the peak's change that they don't explain.
class Differ {
 public:
  Differ(PlanDiff* diff, DiffSummary* summary) : diff_(*diff), summary_(*summary) {}

  void Compare(const MatchedRows& node) {
    Found change;
    change.name = node.newer == nullptr ? node.older->name : node.newer->name;
    change.old_runs = RunsOf(node.older);
    change.new_runs = RunsOf(node.newer);
    change.held = HeldBytes(node.newer) - HeldBytes(node.older);
    change.moved = MovedBy(node.newer) - MovedBy(node.older);
    if (diff_.rest) change.at_peak = AtPeak(node.newer) - AtPeak(node.older);
    NoteCheckpoint(node);
    const bool is_kept = IsKept(node.newer);
    const bool was_kept = IsKept(node.older);
    change.is_as_before = is_kept == was_kept && change.old_runs == change.new_runs &&
                          change.held == Bytes(0) && change.moved == Bytes(0);
    change.kind = is_kept    ? NodeChange::Kind::kKept
                  : was_kept ? NodeChange::Kind::kNotKept
                             : NodeChange::Kind::kRecomputed;
    if (change.is_as_before && diff_.rest) diff_.rest->tensors += change.at_peak;
    if (change.is_as_before && change.at_peak == Bytes(0)) return;
    nodes_.push_back(node);
    found_.push_back(std::move(change));
  }

  void Finish() && {
    GroupAll();
    std::erase_if(found_, [](const Found& found) { return found.is_as_before; });
    SortByWorth(&found_);
    for (Found& found : found_) {
      summary_.group_of.push_back(found.group);
      diff_.changes.push_back(std::move(found));
    }
    for (ComparedCheckpoints* const checkpoints :
         {&summary_.old_only, &summary_.new_only, &summary_.both}) {
      std::vector<const Row*>& rows = rows_of_[checkpoints];
      std::stable_sort(rows.begin(), rows.end(),
                       [](const Row* a, const Row* b) { return b->bytes < a->bytes; });
      for (const Row* const row : rows) {
        checkpoints->names.push_back(row->name);
        checkpoints->bytes += row->bytes;
      }
    }
  }

 private:
  struct Found : NodeChange {
    // True if the node's treatment is unchanged but only one of the peaks has it in memory.
    bool is_as_before = false;
    size_t group = 0;  // Index into the summary's groups.
  };

  void NoteCheckpoint(const MatchedRows& node) {
    if (IsKept(node.newer)) {
      rows_of_[IsKept(node.older) ? &summary_.both : &summary_.new_only].push_back(node.newer);
    } else if (IsKept(node.older)) {
      rows_of_[&summary_.old_only].push_back(node.older);
    }
  }

  // Sums up the changes per group and assigns each change to its group.
  void GroupAll() {
    RowGroups groups = GroupRows(nodes_);
    summary_.grouped_by = groups.kind;
    std::vector<GroupChange> sums(groups.names.size());
    for (size_t i = 0; i < sums.size(); ++i) sums[i].name = std::move(groups.names[i]);
    for (size_t i = 0; i < found_.size(); ++i) {
      const Found& change = found_[i];
      GroupChange& sum = sums[groups.group_of[i]];
      if (!change.is_as_before) ++sum.changed;
      sum.old_reruns += std::max(change.old_runs - 1, 0);
      sum.new_reruns += std::max(change.new_runs - 1, 0);
      sum.held += change.held;
      sum.at_peak += change.at_peak;
    }
    summary_.groups = sums;
    SortByWorth(&summary_.groups);
    std::map<std::string_view, size_t> place;
    for (size_t i = 0; i < summary_.groups.size(); ++i) place[summary_.groups[i].name] = i;
    for (size_t i = 0; i < found_.size(); ++i) {
      found_[i].group = place.at(sums[groups.group_of[i]].name);
    }
  }

  PlanDiff& diff_;
  DiffSummary& summary_;
  std::vector<MatchedRows> nodes_;
  std::vector<Found> found_;  // One for each change.
  std::map<ComparedCheckpoints*, std::vector<const Row*>> rows_of_;
};

const std::vector<std::string>* ModulesAt(const ModulesOfRows& modules, size_t row) {
  return row < modules.size() ? &modules[row] : nullptr;
}

Lesser CompareLess(bool is_older_less, bool is_newer_less) {
  return is_older_less ? Lesser::kOlder : is_newer_less ? Lesser::kNewer : Lesser::kNeither;
}

// The sum is a double because figures of an unchecked file may add up to more than 2^63.
double StepCost(const PlanFigures& figures) {
  return static_cast<double>(figures.forward_cost.count()) +
         static_cast<double>(figures.backward_cost.count()) +
         static_cast<double>(figures.overhead.count());
}

PlanVerdict VerdictOn(const PlanDiff& diff, const PlanFigures& older, const PlanFigures& newer) {
  PlanVerdict verdict;
  verdict.peak = newer.peak - older.peak;
  verdict.memory = CompareLess(older.peak < newer.peak, newer.peak < older.peak);
  if (!diff.has_same_costs) return verdict;
  const double old_step = StepCost(older);
  verdict.longer = diff.has_same_model ? StepOverheadRatio(newer) - StepOverheadRatio(older)
                   : old_step == 0     ? 0
                                       : StepCost(newer) / old_step - 1;
  verdict.time = CompareLess(verdict.longer > 0, verdict.longer < 0);
  return verdict;
}

}  // namespace

Bytes WorthOf(Bytes held, Bytes at_peak) { return std::max(Magnitude(held), Magnitude(at_peak)); }

std::string_view NameOf(GroupKind kind) {
  switch (kind) {
    case GroupKind::kModule:
      return "module";
    case GroupKind::kSegment:
      return "segment";
    case GroupKind::kRun:
      break;
  }
  return "run";
}

std::string_view NameOf(Lesser lesser) {
  switch (lesser) {
    case Lesser::kOlder:
      return "old";
    case Lesser::kNewer:
      return "new";
    case Lesser::kNeither:
      break;
  }
  return "neither";
}

PlanDigest DigestOf(const TrainingStep& step, const Plan& plan) {
  PlanDigest digest{plan.request, plan.model, plan.figures, {}, std::nullopt, step.is_joint()};
  for (const NodeId id : step.node_ids()) {
    Row row{step.NameOf(id), "", step.OpOf(id), plan.decisions[id], Bytes(0), Bytes(0)};
    const std::vector<TensorId>& outputs = step.OutputsOf(id);
    for (const TensorId output : outputs) row.bytes += step.BytesOf(output);
    if (!outputs.empty()) row.tensor = step.RawNameOf(outputs.front());
    digest.rows.push_back(std::move(row));
  }
  for (const TensorId moved : MovedValues(plan.schedule)) {
    const NodeId producer = step.ProducerOf(moved);
    digest.rows[static_cast<size_t>(producer.index())].moved += step.BytesOf(moved);
  }
  if (!plan.peak) return digest;
  digest.rest.emplace();
  for (const LiveBuffer& buffer : plan.peak->live) {
    if (buffer.kind == BufferKind::kGradient) digest.rest->gradients += buffer.bytes;
    if (buffer.kind == BufferKind::kWorkspace) digest.rest->workspace += buffer.bytes;
    if (buffer.kind != BufferKind::kTensor) continue;
    const NodeId producer = step.ProducerOf(buffer.tensor());
    digest.rows[static_cast<size_t>(producer.index())].at_peak += buffer.bytes;
  }
  return digest;
}

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer) {
  DiffSummary unused;
  return DiffPlans(older, newer, {}, {}, &unused);
}

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer,
                   const ModulesOfRows& older_modules, const ModulesOfRows& newer_modules,
                   DiffSummary* summary) {
  PlanDiff diff;
  diff.has_same_model = older.model.sha256 == newer.model.sha256;
  diff.has_same_costs = HaveSameCosts(older.request, newer.request);
  diff.differences = DifferencesOf(older.request, newer.request);
  diff.request = ListDifferences(older.request, newer.request);
  diff.old_kept = CountKept(older);
  diff.new_kept = CountKept(newer);
  if (diff.has_same_costs && !older.figures.curve.empty() && !newer.figures.curve.empty()) {
    diff.curve = CompareCurves(older.figures.curve, newer.figures.curve);
  }
  diff.compares_nodes = older.is_joint == newer.is_joint;
  if (!diff.compares_nodes) {
    diff.differences.emplace_back(
        "one plan is for a forward graph and the other for a joint graph, so only their figures "
        "are compared");
    summary->verdict = VerdictOn(diff, older.figures, newer.figures);
    diff.has_changes = true;
    return diff;
  }
  if (older.rest && newer.rest) {
    diff.rest = RestAtPeak{Bytes(0), newer.rest->gradients - older.rest->gradients,
                           newer.rest->workspace - older.rest->workspace,
                           newer.figures.other_micro_batches - older.figures.other_micro_batches};
  }
  const RowPartners partners = MatchRows(older, newer, &diff);
  std::vector<bool> is_matched(newer.rows.size());
  Differ differ(&diff, summary);
  for (size_t i = 0; i < older.rows.size(); ++i) {
    const size_t partner = partners[i];
    if (partner == kNoPartner) {
      differ.Compare({&older.rows[i], nullptr, ModulesAt(older_modules, i)});
      continue;
    }
    is_matched[partner] = true;
    differ.Compare({&older.rows[i], &newer.rows[partner], ModulesAt(newer_modules, partner)});
  }
  for (size_t i = 0; i < newer.rows.size(); ++i) {
    if (!is_matched[i]) differ.Compare({nullptr, &newer.rows[i], ModulesAt(newer_modules, i)});
  }
  std::move(differ).Finish();
  summary->verdict = VerdictOn(diff, older.figures, newer.figures);
  diff.has_changes = !diff.changes.empty() || !HaveEqualFigures(older.figures, newer.figures) ||
                     HaveDifferentCurves(older.figures, newer.figures);
  return diff;
}

double StepOverheadRatio(const PlanFigures& figures) {
  // The sum is a double because the figures may come from an unchecked file.
  const double step = static_cast<double>(figures.forward_cost.count()) +
                      static_cast<double>(figures.backward_cost.count());
  return step == 0 ? 0 : static_cast<double>(figures.overhead.count()) / step;
}

}  // namespace ckplan

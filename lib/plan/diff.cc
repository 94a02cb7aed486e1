#include "lib/plan/diff.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace ckplan {
namespace {

// Nodes that share a name are told apart by their order.
using RowKey = std::pair<std::string_view, int32_t>;
using RowsByName = std::map<RowKey, const PlanDigest::Row*>;

RowsByName ByName(const PlanDigest& digest) {
  RowsByName rows;
  std::map<std::string_view, int32_t> seen;
  for (const PlanDigest::Row& row : digest.rows) rows[{row.name, seen[row.name]++}] = &row;
  return rows;
}

bool IsKept(const PlanDigest::Row* row) {
  return row != nullptr && row->decision.action == NodeAction::kKeep;
}
int32_t RunsOf(const PlanDigest::Row* row) {
  return row == nullptr ? 0 : row->decision.recompute_count + 1;
}
Bytes HeldBy(const PlanDigest::Row* row) { return IsKept(row) ? row->bytes : Bytes(0); }

const PlanDigest::Row* Find(const RowsByName& rows, const RowKey& key) {
  const auto found = rows.find(key);
  return found == rows.end() ? nullptr : found->second;
}

int64_t CountKept(const PlanDigest& digest) {
  return std::count_if(digest.rows.begin(), digest.rows.end(),
                       [](const PlanDigest::Row& row) { return IsKept(&row); });
}

bool HaveEqualFigures(const PlanFigures& a, const PlanFigures& b) {
  return std::tuple(a.peak, a.baseline_peak, a.arena, a.overhead, a.forward_cost,
                    a.backward_cost) ==
         std::tuple(b.peak, b.baseline_peak, b.arena, b.overhead, b.forward_cost, b.backward_cost);
}

void Compare(std::string_view name, const PlanDigest::Row* older, const PlanDigest::Row* newer,
             std::vector<NodeChange>* changes) {
  NodeChange change;
  change.name = name;
  change.old_runs = RunsOf(older);
  change.new_runs = RunsOf(newer);
  change.held = HeldBy(newer) - HeldBy(older);
  if (IsKept(older) == IsKept(newer)) {
    if (change.old_runs == change.new_runs && change.held == Bytes(0)) return;
    change.kind = IsKept(newer) ? NodeChange::Kind::kKept : NodeChange::Kind::kRecomputed;
  } else {
    change.kind = IsKept(newer) ? NodeChange::Kind::kKept : NodeChange::Kind::kNotKept;
  }
  changes->push_back(std::move(change));
}

}  // namespace

PlanDigest DigestOf(const TensorGraph& graph, const Plan& plan) {
  PlanDigest digest{plan.request, plan.model, plan.figures, {}};
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    Bytes bytes;
    for (const TensorId output : node.outputs) bytes += graph.tensor(output).bytes;
    digest.rows.push_back({node.name, node.op, plan.decisions[id], bytes});
  }
  return digest;
}

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer) {
  PlanDiff diff;
  diff.has_same_model = older.model.sha256 == newer.model.sha256;
  diff.old_kept = CountKept(older);
  diff.new_kept = CountKept(newer);
  const RowsByName old_rows = ByName(older);
  const RowsByName new_rows = ByName(newer);
  for (const auto& [key, row] : old_rows) {
    Compare(key.first, row, Find(new_rows, key), &diff.changes);
  }
  for (const auto& [key, row] : new_rows) {
    if (Find(old_rows, key) == nullptr) Compare(key.first, nullptr, row, &diff.changes);
  }
  const auto size = [](const NodeChange& change) {
    return change.held < Bytes(0) ? Bytes(0) - change.held : change.held;
  };
  std::sort(diff.changes.begin(), diff.changes.end(),
            [&](const NodeChange& a, const NodeChange& b) {
              return std::tuple(size(b), std::string_view(a.name)) <
                     std::tuple(size(a), std::string_view(b.name));
            });
  diff.has_changes = !diff.changes.empty() || !HaveEqualFigures(older.figures, newer.figures);
  return diff;
}

double StepOverheadRatio(const PlanFigures& figures) {
  // In doubles: the figures may come from a file that nobody has checked.
  const double step = static_cast<double>(figures.forward_cost.count()) +
                      static_cast<double>(figures.backward_cost.count());
  return step == 0 ? 0 : static_cast<double>(figures.overhead.count()) / step;
}

}  // namespace ckplan

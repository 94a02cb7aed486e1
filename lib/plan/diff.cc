#include "lib/plan/diff.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/plan/node_name.h"

namespace ckplan {
namespace {

using Row = PlanDigest::Row;

// For each row of the older plan the number of its partner in the newer one.
constexpr size_t kNone = std::numeric_limits<size_t>::max();
using Partners = std::vector<size_t>;

// Finds partners for the rows that have none yet. Rows that share a name are matched in their
// order.
void MatchBy(std::string Row::*name, const PlanDigest& older, const PlanDigest& newer,
             Partners* partners) {
  std::vector<bool> is_taken(newer.rows.size());
  for (const size_t partner : *partners) {
    if (partner != kNone) is_taken[partner] = true;
  }
  std::map<std::string_view, std::vector<size_t>> left;  // The last one first.
  for (size_t i = newer.rows.size(); i-- > 0;) {
    if (!is_taken[i]) left[newer.rows[i].*name].push_back(i);
  }
  for (size_t i = 0; i < older.rows.size(); ++i) {
    if ((*partners)[i] != kNone || (older.rows[i].*name).empty()) continue;
    const auto found = left.find(older.rows[i].*name);
    if (found == left.end() || found->second.empty()) continue;
    (*partners)[i] = found->second.back();
    found->second.pop_back();
  }
}

// By the names of tensors, which are unique within a model; by those of nodes where a tensor has
// another name now, as the output of a model that has grown behind it.
Partners MatchRows(const PlanDigest& older, const PlanDigest& newer) {
  Partners partners(older.rows.size(), kNone);
  MatchBy(&Row::tensor, older, newer, &partners);
  MatchBy(&Row::name, older, newer, &partners);
  return partners;
}

bool IsKept(const Row* row) { return row != nullptr && row->decision.action == NodeAction::kKeep; }
int32_t RunsOf(const Row* row) {
  const bool runs = row != nullptr && row->decision.action != NodeAction::kDrop;
  return runs ? row->decision.recompute_count + 1 : 0;
}
Bytes HeldBy(const Row* row) { return IsKept(row) ? row->bytes : Bytes(0); }

Bytes AtPeak(const Row* row) { return row == nullptr ? Bytes(0) : row->at_peak; }

int64_t CountKept(const PlanDigest& digest) {
  return std::count_if(digest.rows.begin(), digest.rows.end(),
                       [](const Row& row) { return IsKept(&row); });
}

bool HaveEqualFigures(const PlanFigures& a, const PlanFigures& b) {
  return std::tuple(a.peak, a.baseline_peak, a.arena, a.overhead, a.forward_cost,
                    a.backward_cost) ==
         std::tuple(b.peak, b.baseline_peak, b.arena, b.overhead, b.forward_cost, b.backward_cost);
}

// Collects changes, and the part of the peak's change that they do not account for.
class Differ {
 public:
  explicit Differ(PlanDiff* diff) : diff_(*diff) {}

  // One of them may be null.
  void Compare(const Row* older, const Row* newer) {
    NodeChange change;
    change.name = newer == nullptr ? older->name : newer->name;
    change.old_runs = RunsOf(older);
    change.new_runs = RunsOf(newer);
    change.held = HeldBy(newer) - HeldBy(older);
    if (diff_.rest) change.at_peak = AtPeak(newer) - AtPeak(older);
    const bool is_as_before = IsKept(older) == IsKept(newer);
    if (is_as_before && change.old_runs == change.new_runs && change.held == Bytes(0)) {
      if (diff_.rest) diff_.rest->tensors += change.at_peak;
      return;
    }
    change.kind = IsKept(newer)   ? NodeChange::Kind::kKept
                  : IsKept(older) ? NodeChange::Kind::kNotKept
                                  : NodeChange::Kind::kRecomputed;
    diff_.changes.push_back(std::move(change));
  }

  void Sort() {
    std::stable_sort(diff_.changes.begin(), diff_.changes.end(),
                     [](const NodeChange& a, const NodeChange& b) {
                       return std::tuple(Size(b.at_peak), Size(b.held), std::string_view(a.name)) <
                              std::tuple(Size(a.at_peak), Size(a.held), std::string_view(b.name));
                     });
  }

 private:
  static Bytes Size(Bytes bytes) { return bytes < Bytes(0) ? Bytes(0) - bytes : bytes; }

  PlanDiff& diff_;
};

}  // namespace

PlanDigest DigestOf(const TensorGraph& graph, const Plan& plan) {
  PlanDigest digest{plan.request, plan.model, plan.figures, {}, std::nullopt};
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    Row row{ShownName(graph, id), "", node.op, plan.decisions[id], Bytes(0), Bytes(0)};
    for (const TensorId output : node.outputs) row.bytes += graph.tensor(output).bytes;
    if (!node.outputs.empty()) row.tensor = graph.tensor(node.outputs.front()).name;
    digest.rows.push_back(std::move(row));
  }
  if (!plan.peak) return digest;
  digest.rest.emplace();
  for (const LiveBuffer& buffer : plan.peak->live) {
    if (buffer.kind == BufferKind::kGradient) digest.rest->gradients += buffer.bytes;
    if (buffer.kind == BufferKind::kWorkspace) digest.rest->workspace += buffer.bytes;
    if (buffer.kind != BufferKind::kTensor) continue;
    const NodeId producer = graph.tensor(buffer.tensor()).producer;
    digest.rows[static_cast<size_t>(producer.index())].at_peak += buffer.bytes;
  }
  return digest;
}

PlanDigest DigestOf(const JointGraph& graph, const Plan& plan) {
  PlanDigest digest{plan.request, plan.model, plan.figures, {}, std::nullopt};
  for (const OpId id : graph.ops().ids()) {
    const NodeLabel& label = plan.labels[id];
    Row row{ShownName(graph, id), "", label.op, plan.decisions[id], Bytes(0), Bytes(0)};
    for (const NodeLabel::Output& output : label.outputs) row.bytes += output.bytes;
    if (!label.outputs.empty()) row.tensor = label.outputs.front().name;
    digest.rows.push_back(std::move(row));
  }
  if (!plan.peak) return digest;
  digest.rest.emplace();
  for (const LiveBuffer& buffer : plan.peak->live) {
    if (buffer.kind == BufferKind::kWorkspace) {
      digest.rest->workspace += buffer.bytes;
    } else {
      const OpId maker = graph.value(buffer.tensor()).maker;
      digest.rows[static_cast<size_t>(maker.index())].at_peak += buffer.bytes;
    }
  }
  return digest;
}

PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer) {
  PlanDiff diff;
  diff.has_same_model = older.model.sha256 == newer.model.sha256;
  diff.has_same_costs = HaveSameCosts(older.request, newer.request);
  diff.differences = DifferencesOf(older.request, newer.request);
  diff.request = EachDifference(older.request, newer.request);
  diff.old_kept = CountKept(older);
  diff.new_kept = CountKept(newer);
  if (older.rest && newer.rest) {
    diff.rest = RestAtPeak{Bytes(0), newer.rest->gradients - older.rest->gradients,
                           newer.rest->workspace - older.rest->workspace,
                           newer.figures.other_micro_batches - older.figures.other_micro_batches};
  }
  const Partners partners = MatchRows(older, newer);
  std::vector<bool> is_matched(newer.rows.size());
  Differ differ(&diff);
  for (size_t i = 0; i < older.rows.size(); ++i) {
    const size_t partner = partners[i];
    if (partner != kNone) is_matched[partner] = true;
    differ.Compare(&older.rows[i], partner == kNone ? nullptr : &newer.rows[partner]);
  }
  for (size_t i = 0; i < newer.rows.size(); ++i) {
    if (!is_matched[i]) differ.Compare(nullptr, &newer.rows[i]);
  }
  differ.Sort();
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

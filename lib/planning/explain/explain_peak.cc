#include "lib/planning/explain/explain_peak.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/explain/what_if.h"
#include "lib/planning/plan/offload_terms.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

class PeakLister {
 public:
  explicit PeakLister(const TracedPlan& traced)
      : traced_(traced), graph_(traced.graph), timeline_(traced.timeline) {}

  std::vector<LiveAtPeak> List() const {
    std::vector<LiveAtPeak> live;
    for (const PeakBuffer& buffer : FindPeakBuffers(timeline_)) live.push_back(ItemOf(buffer));
    std::stable_sort(live.begin(), live.end(),
                     [](const LiveAtPeak& a, const LiveAtPeak& b) { return a.bytes > b.bytes; });
    return live;
  }

 private:
  int32_t peak_step() const { return static_cast<int32_t>(timeline_.peak_step); }

  LiveAtPeak ItemOf(const PeakBuffer& live) const {
    const Buffer& buffer = timeline_.buffers[static_cast<size_t>(live.buffer)];
    LiveAtPeak item;
    item.holds = buffer.kind;
    item.bytes = buffer.bytes;
    item.since = buffer.first_step;
    item.until = buffer.last_step;
    item.tensor = buffer.tensor;
    item.node =
        buffer.kind == BufferKind::kWorkspace ? buffer.node : graph_.ProducerOf(buffer.tensor);
    item.kind =
        buffer.kind == BufferKind::kWorkspace ? MemoryKind::kWorkspace : MemoryKind::kGradients;
    item.is_used = buffer.kind == BufferKind::kWorkspace;
    if (buffer.kind == BufferKind::kTensor) NoteVersion(live.version, &item);
    return item;
  }

  void NoteVersion(int32_t v, LiveAtPeak* item) const {
    const auto index = static_cast<size_t>(v);
    item->version = v;
    item->tensor = graph_.StorageOf(traced_.version(v).tensor);
    item->node = graph_.ProducerOf(item->tensor);
    item->kind = traced_.kinds[index];
    item->until = traced_.until[index];
    item->since = traced_.version(v).made_at;
    for (const int32_t other : traced_.versions_in[item->tensor]) {
      const Version& tenant = traced_.version(other);
      if (tenant.buffer != traced_.version(v).buffer) continue;
      if (tenant.tensor == item->tensor && tenant.made_at <= peak_step()) {
        item->since = tenant.made_at;
        item->kind = traced_.kinds[static_cast<size_t>(other)];
      }
      item->is_used = item->is_used || tenant.made_at == peak_step();
      const std::vector<int32_t>& reads = traced_.reads[static_cast<size_t>(other)];
      const auto read = std::lower_bound(reads.begin(), reads.end(), peak_step());
      if (read == reads.end()) continue;
      item->is_used = item->is_used || *read == peak_step();
      const auto next = *read == peak_step() ? read + 1 : read;
      const bool is_sooner =
          next != reads.end() && (item->next_read < 0 || *next < item->next_read);
      if (is_sooner) item->next_read = *next;
    }
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const Timeline& timeline_;
};

class PeakExplainer {
 public:
  explicit PeakExplainer(const TracedPlan& traced)
      : traced_(traced), graph_(traced.graph), timeline_(traced.timeline) {
    if (graph_.link() == nullptr || !traced.plan.request.offload) return;
    Result<OffloadTerms> terms = OffloadTermsOf(graph_, traced.plan.request);
    if (!terms.ok()) return;
    may_move_ = std::move(terms->may_move);
    for (const TensorId value : MovedValues(traced.plan.schedule)) may_move_[value] = false;
  }

  PeakExplanation Explain() && {
    found_.other_micro_batches = traced_.plan.figures.other_micro_batches;
    found_.bytes = timeline_.peak + found_.other_micro_batches;
    found_.step = timeline_.peak_step;
    found_.can_release = traced_.plan.schedule.frees == FreePolicy::kLiveness;
    if (traced_.steps().empty()) return std::move(found_);
    found_.equal_steps = static_cast<size_t>(
        std::count(timeline_.step_bytes.begin(), timeline_.step_bytes.end(), timeline_.peak));
    ListLive();
    if (found_.can_release) TryReleases();
    FindLargestStep();
    return std::move(found_);
  }

 private:
  int32_t peak_step() const { return static_cast<int32_t>(timeline_.peak_step); }

  void ListLive() {
    found_.live = ListLiveAtPeak(traced_);
    for (const LiveAtPeak& item : found_.live) {
      found_.by_kind[static_cast<size_t>(item.kind)] += item.bytes;
      if (item.is_used) found_.used += item.bytes;
    }
  }

  // Tries the largest first, because they can save most, and stops at the work limit.
  void TryReleases() {
    for (size_t i = 0; i < found_.live.size(); ++i) {
      const LiveAtPeak& item = found_.live[i];
      if (item.version < 0 || item.is_used || item.next_read < 0) continue;
      const bool may_run_again = traced_.CanRerun(graph_.ProducerOf(item.tensor));
      const bool may_move = !may_move_.empty() && may_move_[item.tensor];
      if (!may_run_again && !may_move) continue;
      if (measured_steps_ > kWhatIfSteps) {
        ++found_.unmeasured;
        continue;
      }
      PollStop();
      if (may_run_again) TryRecomputing(i);
      if (may_move) TryMoving(i);
    }
    std::stable_sort(found_.next.begin(), found_.next.end(),
                     [](const Release& a, const Release& b) {
                       return std::tuple(a.then.peak, a.then.overhead) <
                              std::tuple(b.then.peak, b.then.overhead);
                     });
  }

  void TryRecomputing(size_t live) {
    const LiveAtPeak& item = found_.live[live];
    const std::optional<Schedule> schedule =
        ReleaseAfter(traced_, item.version, LastUseBefore(item));
    if (schedule) Measure(live, *schedule, false);
  }

  void TryMoving(size_t live) {
    const LiveAtPeak& item = found_.live[live];
    const auto begin = static_cast<size_t>(LastUseBefore(item)) + 1;
    const auto end = static_cast<size_t>(item.next_read);
    // The lowest peak is that with the value on the host during the whole gap. It only needs to be
    // there while the plan would otherwise need more.
    Bytes least;
    for (size_t k = 0; k < traced_.steps().size(); ++k) {
      const Bytes away = k >= begin && k < end ? item.bytes : Bytes(0);
      least = std::max(least, timeline_.step_bytes[k] - away);
    }
    size_t absent_from = timeline_.peak_step, back = absent_from + 1;
    if (least < timeline_.peak) {
      for (absent_from = begin; timeline_.step_bytes[absent_from] <= least;) ++absent_from;
      for (back = end; timeline_.step_bytes[back - 1] <= least;) --back;
    }
    Measure(live, MoveBetween(traced_, item.tensor, LastMadeBefore(item), absent_from, back), true);
  }

  void Measure(size_t live, const Schedule& schedule, bool is_moved) {
    measured_steps_ += static_cast<int64_t>(schedule.steps.size());
    const Result<Simulation> then = Simulator(graph_).Run(schedule);
    if (!then.ok()) return;
    const std::optional<Bytes>& host_budget = traced_.plan.request.host_budget;
    if (host_budget && then->host_peak > *host_budget) return;
    found_.next.push_back({live, *then, is_moved});
  }

  size_t LastMadeBefore(const LiveAtPeak& item) const {
    int32_t last = item.since;
    for (const int32_t other : traced_.versions_in[item.tensor]) {
      const Version& tenant = traced_.version(other);
      const bool is_there = tenant.buffer == traced_.version(item.version).buffer;
      if (is_there && tenant.made_at < peak_step()) last = std::max(last, tenant.made_at);
    }
    return static_cast<size_t>(last);
  }

  // The last step before the peak that writes or reads the buffer's contents.
  int32_t LastUseBefore(const LiveAtPeak& item) const {
    int32_t last = item.since;
    const int32_t buffer = traced_.version(item.version).buffer;
    for (const int32_t other : traced_.versions_in[item.tensor]) {
      const Version& tenant = traced_.version(other);
      if (tenant.buffer != buffer || tenant.made_at > peak_step()) continue;
      last = std::max(last, tenant.made_at);
      for (const int32_t read : traced_.reads[static_cast<size_t>(other)]) {
        if (read < peak_step()) last = std::max(last, read);
      }
    }
    return last;
  }

  // A run beyond the first may be missing or elsewhere in other plans, so it does not bound them.
  void FindLargestStep() {
    const std::vector<StepMemory> memory = TraceMemory(timeline_, traced_.kinds);
    for (size_t k = 0; k < traced_.steps().size(); ++k) {
      if (traced_.has_run[k]) continue;
      // A joint graph's values are not gradients in this sense, because a plan decides how long
      // they live.
      const Bytes gradients = graph_.is_joint() ? Bytes(0) : memory[k].of(MemoryKind::kGradients);
      const Bytes need = graph_.OwnNeedOf(traced_.steps()[k]) + gradients;
      if (need > found_.largest.bytes) found_.largest = {need, k};
    }
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const Timeline& timeline_;
  // The values that may be moved and that the plan does not move; empty without a link.
  IdVector<ValueId, bool> may_move_;
  PeakExplanation found_;
  int64_t measured_steps_ = 0;
};

using BytesByKind = std::array<Bytes, kMemoryKinds>;

Bytes Sum(const BytesByKind& by_kind) {
  return std::accumulate(by_kind.begin(), by_kind.end(), Bytes());
}

// A buffer with its enclosing modules, outermost first. A row of modules covers the first `depth`
// of them.
struct ModuleMember {
  const LiveAtPeak* item = nullptr;
  std::vector<std::string> chain;
  size_t depth = 0;
};

// A module, or several that differ only by a number: "layers.*".
struct ModuleRow {
  ModuleShare share;
  std::vector<ModuleMember> members;
  std::set<std::string> modules;
  bool is_whole = false;  // Not divided any further.

  bool operator<(const ModuleRow& other) const {
    return std::tuple(other.share.total(), share.path) <
           std::tuple(share.total(), other.share.path);
  }
};

// Replaces each part of the path that is a number with "*".
std::string ReplaceNumbers(const std::string& path) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string text;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find_first_of("/.", begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    const bool is_number = !part.empty() && std::all_of(part.begin(), part.end(), is_digit);
    text += is_number ? "*" : part;
    if (end < path.size()) text += path[end];
    begin = end + 1;
  }
  return text;
}

// Returns the path of the member's next module within the row's.
std::string PathWithin(const std::string& row, const ModuleMember& member, bool merges_numbers) {
  const std::string& path = member.chain[member.depth];
  const std::string& outer = member.depth > 0 ? member.chain[member.depth - 1] : "";
  const bool is_within = path.starts_with(outer);
  const std::string rest = is_within ? path.substr(outer.size()) : path;
  return (is_within ? row : "") + (merges_numbers ? ReplaceNumbers(rest) : rest);
}

// Returns a row per submodule, and one for the module's contents outside its submodules.
std::vector<ModuleRow> Submodules(const ModuleRow& row, bool merges_numbers) {
  std::map<std::pair<bool, std::string>, ModuleRow> found;
  for (const ModuleMember& member : row.members) {
    const bool is_own = member.depth == member.chain.size();
    const std::string path =
        is_own ? row.share.path : PathWithin(row.share.path, member, merges_numbers);
    ModuleRow& child = found[{is_own, path}];
    child.share.path = path;
    child.share.by_kind[static_cast<size_t>(member.item->kind)] += member.item->bytes;
    child.is_whole = is_own;
    if (!is_own) child.modules.insert(member.chain[member.depth]);
    child.members.push_back(member);
    if (!is_own) ++child.members.back().depth;
  }
  std::vector<ModuleRow> rows;
  for (auto& [key, child] : found) {
    if (child.modules.size() == 1) child.share.path = *child.modules.begin();
    rows.push_back(std::move(child));
  }
  return rows;
}

// Returns at most `most` rows for the submodules. If there are more, those that differ only by a
// number share a row; if that is still too many, returns no rows.
std::vector<ModuleRow> FewSubmodules(const ModuleRow& row, size_t most) {
  std::vector<ModuleRow> rows = Submodules(row, false);
  if (rows.size() > most) rows = Submodules(row, true);
  // A single row for all submodules adds nothing to the module's own row.
  const bool is_redundant = rows.size() == 1 && rows.front().modules.size() > 1;
  if (is_redundant) rows = FewSubmodules(ModuleRow(std::move(rows.front())), most);
  if (rows.size() > most) rows.clear();
  return rows;
}

}  // namespace

std::vector<LiveAtPeak> ListLiveAtPeak(const TracedPlan& traced) {
  return PeakLister(traced).List();
}

PeakExplanation ExplainPeak(const TracedPlan& traced) { return PeakExplainer(traced).Explain(); }

Bytes ModuleShare::total() const { return Sum(by_kind); }

std::vector<ModuleShare> SharesOfModules(const TrainingStep& graph,
                                         const std::vector<LiveAtPeak>& live, size_t max_rows) {
  ModuleRow all;
  for (const LiveAtPeak& item : live) {
    std::vector<std::string> chain;
    if (!item.node.is_none()) chain = graph.ModulesOf(item.node);
    all.members.push_back({&item, std::move(chain), 0});
  }
  std::vector<ModuleRow> rows = Submodules(all, false);
  if (rows.size() > max_rows) rows = Submodules(all, true);
  for (;;) {
    std::stable_sort(rows.begin(), rows.end());
    const auto largest =
        std::find_if(rows.begin(), rows.end(), [](const ModuleRow& row) { return !row.is_whole; });
    if (largest == rows.end()) break;
    const size_t others = rows.size() - 1;
    std::vector<ModuleRow> parts =
        FewSubmodules(*largest, others < max_rows ? max_rows - others : 0);
    if (parts.empty()) {
      largest->is_whole = true;
      continue;
    }
    rows.erase(largest);
    for (ModuleRow& part : parts) rows.push_back(std::move(part));
  }
  std::vector<ModuleShare> shares;
  for (ModuleRow& row : rows) shares.push_back(std::move(row.share));
  return shares;
}

}  // namespace ckplan

#include "lib/explain/explain_peak.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/explain/what_if.h"
#include "lib/schedule/peak.h"
#include "lib/schedule/training_step.h"

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
    item.node = buffer.kind == BufferKind::kWorkspace ? buffer.node : graph_.MakerOf(buffer.tensor);
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
    item->node = graph_.MakerOf(item->tensor);
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
      : traced_(traced), graph_(traced.graph), timeline_(traced.timeline) {}

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

  // Tries the largest first, since they promise most, and stops when the limit of work is reached.
  void TryReleases() {
    int64_t steps = 0;
    for (size_t i = 0; i < found_.live.size(); ++i) {
      const LiveAtPeak& item = found_.live[i];
      if (item.version < 0 || item.is_used || item.next_read < 0) continue;
      if (!traced_.MayRunAgain(graph_.MakerOf(item.tensor))) continue;
      if (steps > kWhatIfSteps) {
        ++found_.unmeasured;
        continue;
      }
      PollStop();
      const std::optional<Schedule> schedule =
          FreedAfter(traced_, item.version, LastUseBefore(item));
      if (!schedule) continue;
      steps += static_cast<int64_t>(schedule->steps.size());
      found_.next.push_back({i, Simulator(graph_).Run(*schedule).value()});
    }
    std::stable_sort(found_.next.begin(), found_.next.end(),
                     [](const Release& a, const Release& b) {
                       return std::tuple(a.then.peak, a.then.overhead) <
                              std::tuple(b.then.peak, b.then.overhead);
                     });
  }

  // The last step before the peak that makes or reads the buffer's contents.
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

  // A run beyond the first may be missing or elsewhere in other plans, so it is no bound for them.
  void FindLargestStep() {
    const std::vector<StepMemory> memory = TraceMemory(timeline_, traced_.kinds);
    for (size_t k = 0; k < traced_.steps().size(); ++k) {
      if (traced_.has_run[k]) continue;
      // Values of a joint graph are not gradients in this sense: a plan chooses how long they live.
      const Bytes gradients = graph_.is_joint() ? Bytes(0) : memory[k].of(MemoryKind::kGradients);
      const Bytes need = graph_.OwnNeedOf(traced_.steps()[k]) + gradients;
      if (need > found_.largest.bytes) found_.largest = {need, k};
    }
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const Timeline& timeline_;
  PeakExplanation found_;
};

// A module and its submodules.
struct ModuleNode {
  ModuleShare share;
  std::set<std::string> children;
  std::array<Bytes, kMemoryKinds> own = {};  // Buffers that belong to none of the children.
};

using ModuleTree = std::map<std::string, ModuleNode>;

ModuleTree TreeOf(const TrainingStep& graph, const std::vector<LiveAtPeak>& live,
                  std::set<std::string>* roots) {
  ModuleTree tree;
  for (const LiveAtPeak& item : live) {
    std::vector<std::string> chain;
    if (!item.node.is_none()) chain = graph.ModulesOf(item.node);
    if (chain.empty()) chain.emplace_back();
    roots->insert(chain.front());
    const auto kind = static_cast<size_t>(item.kind);
    for (size_t i = 0; i < chain.size(); ++i) {
      ModuleNode& module = tree[chain[i]];
      module.share.path = chain[i];
      module.share.by_kind[kind] += item.bytes;
      if (i + 1 < chain.size()) {
        module.children.insert(chain[i + 1]);
      } else {
        module.own[kind] += item.bytes;
      }
    }
  }
  return tree;
}

Bytes Sum(const std::array<Bytes, kMemoryKinds>& by_kind) {
  return std::accumulate(by_kind.begin(), by_kind.end(), Bytes());
}

}  // namespace

std::vector<LiveAtPeak> ListLiveAtPeak(const TracedPlan& traced) {
  return PeakLister(traced).List();
}

PeakExplanation ExplainPeak(const TracedPlan& traced) { return PeakExplainer(traced).Explain(); }

Bytes ModuleShare::total() const { return Sum(by_kind); }

std::vector<ModuleShare> SharesOfModules(const TrainingStep& graph,
                                         const std::vector<LiveAtPeak>& live, size_t max_rows) {
  std::set<std::string> rows;
  const ModuleTree tree = TreeOf(graph, live, &rows);
  std::vector<ModuleShare> parts;  // Buffers directly in a module that has been split.
  std::set<std::string> whole;     // Modules with too many submodules to split, or with none.
  while (rows.size() > whole.size()) {
    const auto is_smaller = [&](const std::string& a, const std::string& b) {
      return std::tuple(tree.at(a).share.total(), b) < std::tuple(tree.at(b).share.total(), a);
    };
    std::string largest;
    bool has_largest = false;
    for (const std::string& row : rows) {
      if (whole.contains(row) || (has_largest && !is_smaller(largest, row))) continue;
      largest = row;
      has_largest = true;
    }
    const ModuleNode& module = tree.at(largest);
    const size_t own = Sum(module.own) > Bytes(0) ? 1 : 0;
    const size_t count = rows.size() - 1 + parts.size() + own + module.children.size();
    if (module.children.empty() || count > max_rows) {
      whole.insert(largest);
      continue;
    }
    rows.erase(largest);
    rows.insert(module.children.begin(), module.children.end());
    if (own > 0) parts.push_back({largest, module.own});
  }
  for (const std::string& row : rows) parts.push_back(tree.at(row).share);
  std::sort(parts.begin(), parts.end(), [](const ModuleShare& a, const ModuleShare& b) {
    return std::tuple(b.total(), a.path) < std::tuple(a.total(), b.path);
  });
  return parts;
}

}  // namespace ckplan

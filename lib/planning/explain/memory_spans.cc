#include "lib/planning/explain/memory_spans.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

class SpanFinder {
 public:
  explicit SpanFinder(const TracedPlan& traced)
      : traced_(traced), timeline_(traced.timeline), versions_in_(timeline_.buffers.size()) {
    for (size_t v = 0; v < timeline_.versions.size(); ++v) {
      const auto buffer = static_cast<size_t>(timeline_.versions[v].buffer);
      versions_in_[buffer].push_back(static_cast<int32_t>(v));
    }
  }

  MemorySpans Find() && {
    FindMoments();
    for (size_t b = 0; b < timeline_.buffers.size(); ++b) {
      PollStop();
      if (timeline_.buffers[b].bytes > Bytes(0)) AddSpans(b);
    }
    return std::move(found_);
  }

 private:
  struct Event {
    size_t buffer = 0;
    bool is_release = false;
  };

  // A tick of the timeline is one allocation or release, so a moment is the tick plus the number of
  // steps that have begun.
  void FindMoments() {
    const std::vector<Buffer>& buffers = timeline_.buffers;
    std::vector<Event> events(2 * buffers.size());
    for (size_t b = 0; b < buffers.size(); ++b) {
      events[static_cast<size_t>(buffers[b].begin)] = {b, false};
      events[static_cast<size_t>(buffers[b].end)] = {b, true};
    }
    Bytes live;
    size_t next = 0;
    for (size_t step = 0; step < traced_.steps().size(); ++step) {
      const auto begin = static_cast<int64_t>(next + step);
      found_.step_begin.push_back(begin);
      int64_t highest = begin;
      Bytes most = live;
      for (; next < events.size() && StepOf(events[next]) == step; ++next) {
        const Bytes bytes = buffers[events[next].buffer].bytes;
        events[next].is_release ? live -= bytes : live += bytes;
        if (live <= most) continue;
        most = live;
        highest = MomentOf(static_cast<int64_t>(next), step);
      }
      found_.highest.push_back(highest);
    }
    found_.step_begin.push_back(static_cast<int64_t>(next + traced_.steps().size()));
  }

  size_t StepOf(const Event& event) const {
    const Buffer& buffer = timeline_.buffers[event.buffer];
    return static_cast<size_t>(event.is_release ? buffer.last_step : buffer.first_step);
  }

  static int64_t MomentOf(int64_t tick, size_t step) {
    return tick + static_cast<int64_t>(step) + 1;
  }

  void AddSpans(size_t b) {
    const Buffer& buffer = timeline_.buffers[b];
    MemorySpan span;
    span.holds = buffer.kind;
    span.tensor = buffer.tensor;
    span.node = buffer.kind == BufferKind::kWorkspace ? buffer.node : NodeId();
    span.kind =
        buffer.kind == BufferKind::kWorkspace ? MemoryKind::kWorkspace : MemoryKind::kGradients;
    span.bytes = buffer.bytes;
    span.begin = MomentOf(buffer.begin, static_cast<size_t>(buffer.first_step));
    if (buffer.kind == BufferKind::kTensor) FollowVersions(b, &span);
    span.end = MomentOf(buffer.end, static_cast<size_t>(buffer.last_step));
    Finish(std::move(span));
  }

  // Adds all spans of the buffer except the last, which it stores in `span`.
  void FollowVersions(size_t b, MemorySpan* span) {
    for (const int32_t v : versions_in_[b]) {
      const Version& version = traced_.version(v);
      const TensorId storage = traced_.graph.StorageOf(version.tensor);
      const MemoryKind kind = traced_.kinds[static_cast<size_t>(v)];
      const bool is_alias = storage != version.tensor;
      if (!is_alias && version.made_at > timeline_.buffers[b].first_step) {
        const int64_t begin = found_.step_begin[static_cast<size_t>(version.made_at)];
        MemorySpan next = *span;
        next.reads.clear();
        next.begin = begin;
        span->end = begin;
        Finish(std::exchange(*span, std::move(next)));
      }
      if (!is_alias) {
        span->tensor = storage;
        span->kind = kind;
      }
      const std::vector<int32_t>& reads = traced_.reads[static_cast<size_t>(v)];
      span->reads.insert(span->reads.end(), reads.begin(), reads.end());
    }
  }

  void Finish(MemorySpan span) {
    if (span.begin == span.end) return;
    std::sort(span.reads.begin(), span.reads.end());
    span.reads.erase(std::unique(span.reads.begin(), span.reads.end()), span.reads.end());
    found_.spans.push_back(std::move(span));
  }

  const TracedPlan& traced_;
  const Timeline& timeline_;
  // The versions in each buffer, in order of creation.
  std::vector<std::vector<int32_t>> versions_in_;
  MemorySpans found_;
};

}  // namespace

MemorySpans FindMemorySpans(const TracedPlan& traced) { return SpanFinder(traced).Find(); }

std::vector<Bytes> KeepAllMemory(const TracedPlan& traced) {
  const Schedule keep_all = traced.graph.KeepAll();
  std::map<std::pair<StepKind, int32_t>, Bytes> use;
  if (!keep_all.steps.empty()) {
    const Timeline timeline = BuildTimeline(traced.graph, keep_all);
    for (size_t k = 0; k < keep_all.steps.size(); ++k) {
      use[{keep_all.steps[k].kind, keep_all.steps[k].index}] = timeline.step_bytes[k];
    }
  }
  std::vector<Bytes> memory;
  for (size_t k = 0; k < traced.steps().size(); ++k) {
    const auto found = use.find({traced.steps()[k].kind, traced.steps()[k].index});
    const bool is_work = found != use.end() && !traced.has_run[k];
    memory.push_back(is_work ? found->second : memory.empty() ? Bytes(0) : memory.back());
  }
  return memory;
}

}  // namespace ckplan

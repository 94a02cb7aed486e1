#include "lib/problem/schedule/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/check.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

namespace {

Cost AddTime(Cost time, Cost duration) { return std::min(time + duration, kLastMoment); }

}  // namespace

TransferClock::TransferClock(const StepTable& table, const Link& link)
    : table_(table),
      link_(link),
      out_of_(table.bytes.size(), kNone),
      arrival_of_(table.bytes.size(), kNone) {}

void TransferClock::Work(int32_t kind) {
  steps_.push_back({Cost(0), now_, now_});
  if (kind < table_.first_transfer) return Run(kind);
  const int32_t value = table_.MovedBy(kind);
  const auto at = static_cast<size_t>(value);
  switch (table_.TransferOf(kind)) {
    case StepKind::kOut: {
      const LinkCopy* const arrival = CopyAt(arrival_of_[at]);
      const Cost there = arrival == nullptr ? Cost(0) : arrival->end;
      Copy(CopyWay::kOut, value, std::max(now_, there));
      out_of_[at] = static_cast<int32_t>(copies_.size()) - 1;
      break;
    }
    case StepKind::kDrop:
      WaitUntil(CopyAt(out_of_[at])->end);
      break;
    default:
      Copy(CopyWay::kIn, value, std::max(now_, CopyAt(out_of_[at])->end));
      arrival_of_[at] = static_cast<int32_t>(copies_.size()) - 1;
  }
}

void TransferClock::Run(int32_t kind) {
  for (const int32_t read : table_.reads[kind]) {
    int32_t& arrival =
        arrival_of_[static_cast<size_t>(table_.storage_of[static_cast<size_t>(read)])];
    if (arrival == kNone) continue;
    WaitUntil(CopyAt(arrival)->end);
    arrival = kNone;
  }
  now_ = AddTime(now_, table_.cost[static_cast<size_t>(kind)]);
  steps_.back().end = now_;
  // Versions that a run creates are available immediately.
  for (const int32_t write : table_.writes[kind]) arrival_of_[static_cast<size_t>(write)] = kNone;
}

void TransferClock::WaitUntil(Cost time) {
  if (time <= now_) return;
  stall_ += time - now_;
  steps_.back().waits += time - now_;
  steps_.back().begin = steps_.back().end = now_ = time;
}

void TransferClock::Copy(CopyWay way, int32_t value, Cost earliest) {
  const Bytes bytes = table_.bytes[static_cast<size_t>(value)];
  Cost& free = free_[static_cast<size_t>(way)];
  const Cost begin = std::max(free, earliest);
  const Cost end = AddTime(begin, link_.TimeOf(way, bytes));
  free = end;
  if (link_.duplex == Duplex::kHalf) free_[0] = free_[1] = end;
  copies_.push_back(
      {static_cast<int32_t>(steps_.size()) - 1, way, TensorId(value), bytes, begin, end});
  transferred_ += bytes;
}

namespace {

// The beginning or the end of a copy.
struct HostEvent {
  int32_t step = 0;
  bool is_end = false;
  size_t copy = 0;
};

// Returns the events in order. Copies that end at a step are in memory while it runs.
std::vector<HostEvent> EventsOf(const std::vector<HostCopy>& copies) {
  std::vector<HostEvent> events;
  for (size_t i = 0; i < copies.size(); ++i) {
    events.push_back({copies[i].first_step, false, i});
    events.push_back({copies[i].last_step, true, i});
  }
  std::sort(events.begin(), events.end(), [](const HostEvent& a, const HostEvent& b) {
    return std::tie(a.step, a.is_end, a.copy) < std::tie(b.step, b.is_end, b.copy);
  });
  return events;
}

}  // namespace

HostMeter::HostMeter(const StepTable& table)
    : table_(table), copy_of_(table.bytes.size(), kNone), load_of_(table.bytes.size(), kNone) {}

void HostMeter::Make(int32_t value, int32_t /*buffer*/, int32_t /*last_read*/) {
  load_of_[static_cast<size_t>(value)] = kNone;
  made_.push_back(value);
}

void HostMeter::Work(int32_t kind) {
  if (kind < table_.first_transfer) {
    for (const int32_t read : table_.reads[kind]) {
      const int32_t load = load_of_[static_cast<size_t>(read)];
      if (load == kNone) continue;
      HostLoad& loaded = loads_[static_cast<size_t>(load)];
      const auto copy = static_cast<size_t>(loaded.copy);
      if (!loaded.is_read && last_load_[copy] == load) copies_[copy].last_step = step_;
      loaded.is_read = true;
    }
    return;
  }
  const int32_t value = table_.MovedBy(kind);
  int32_t& copy = copy_of_[static_cast<size_t>(value)];
  switch (table_.TransferOf(kind)) {
    case StepKind::kOut:
      copy = static_cast<int32_t>(copies_.size());
      copies_.push_back({TensorId(value), table_.bytes[static_cast<size_t>(value)], step_, step_});
      last_load_.push_back(kNone);
      break;
    case StepKind::kDrop:
      copies_[static_cast<size_t>(copy)].last_step = step_;
      break;
    default:
      for (const int32_t made : made_) {
        load_of_[static_cast<size_t>(made)] = static_cast<int32_t>(loads_.size());
      }
      last_load_[static_cast<size_t>(copy)] = static_cast<int32_t>(loads_.size());
      loads_.push_back({copy, false});
  }
}

void HostMeter::EndStep(int32_t /*kind*/) {
  made_.clear();
  ++step_;
}

Bytes HostMeter::peak() const { return HostPeakOf(copies_); }

HostArena PlaceOnHost(const std::vector<HostCopy>& copies) {
  if (copies.empty()) return {};
  Timeline timeline;
  for (const HostCopy& copy : copies) {
    timeline.buffers.push_back({BufferKind::kTensor, copy.value, NodeId(), copy.bytes});
  }
  int64_t tick = 0;  // The arena needs a unique tick per event.
  for (const HostEvent& event : EventsOf(copies)) {
    Buffer& buffer = timeline.buffers[event.copy];
    (event.is_end ? buffer.end : buffer.begin) = tick++;
  }
  timeline.peak = HostPeakOf(copies);
  Arena arena = PlaceTightly(timeline);
  return {arena.bytes, std::move(arena.offsets)};
}

Bytes HostPeakOf(const std::vector<HostCopy>& copies) {
  Bytes now;
  Bytes peak;
  for (const HostEvent& event : EventsOf(copies)) {
    const Bytes bytes = copies[event.copy].bytes;
    now += event.is_end ? Bytes(0) - bytes : bytes;
    peak = std::max(peak, now);
  }
  return peak;
}

std::vector<TensorId> MovedValues(const Schedule& schedule) {
  std::vector<TensorId> moved;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kOut) moved.push_back(step.tensor());
  }
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  return moved;
}

Transfers TransfersOf(const TrainingStep& step, const Schedule& schedule) {
  return TransfersOver(step.link() == nullptr ? Link() : *step.link(), step, schedule);
}

Transfers TransfersOver(const Link& link, const TrainingStep& step, const Schedule& schedule) {
  StepTable table = TableOf(step);
  AddTransfers(step.joint(), &table);
  Replay replay(table);
  const std::vector<int32_t> kinds = KindsOf(step, schedule);
  const auto fault = replay.Read(kinds, schedule.frees);
  CKPLAN_CHECK(!fault, "the schedule passed Simulator::Run");
  HostMeter host(table);
  TransferClock clock(table, link);
  EachSink<HostMeter, TransferClock> sinks(&host, &clock);
  replay.Report(&sinks);
  return {clock.copies(),      clock.steps(),    host.copies(), host.peak(),
          clock.transferred(), clock.makespan(), clock.stall()};
}

namespace {

// Returns the last run that reads each value, or -1.
IdVector<ValueId, int32_t> LastReads(const JointGraph& graph, const Schedule& schedule) {
  IdVector<ValueId, int32_t> last(graph.values().size(), -1);
  for (size_t at = 0; at < schedule.steps.size(); ++at) {
    const Step& step = schedule.steps[at];
    if (step.is_transfer()) continue;
    for (const ValueId read : graph.op(step.node()).reads) last[read] = static_cast<int32_t>(at);
  }
  return last;
}

}  // namespace

Result<Schedule> InForwardForm(const TensorGraph& graph, const Expansion& expansion,
                               const Schedule& schedule) {
  const auto tensors = static_cast<int32_t>(graph.tensors().size());
  const IdVector<ValueId, int32_t> last_reads = LastReads(expansion.graph, schedule);
  Schedule forward;
  forward.steps.reserve(schedule.steps.size());
  for (Step step : schedule.steps) {
    const auto at = static_cast<int32_t>(forward.steps.size());
    if (!step.is_transfer()) {
      forward.steps.push_back(expansion.step_of[static_cast<size_t>(step.index)]);
      continue;
    }
    if (step.index >= tensors) {
      const TensorId of = expansion.gradient_of[step.tensor()];
      if (of.is_none() || last_reads[step.tensor()] < at) {
        return MakeError(ErrorCode::kUnsupported,
                         fmt::format("step {} moves \"{}\", which no later step reads", at,
                                     expansion.graph.value(step.tensor()).name));
      }
      step.index = tensors + of.index();
    }
    forward.steps.push_back(step);
  }
  return forward;
}

}  // namespace ckplan

#include "lib/problem/schedule/host_meter.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

// The beginning or the end of a copy.
struct HostEvent {
  int32_t step = 0;
  bool is_end = false;
  size_t copy = 0;
};

// Returns the events in order. Copies that end at a step are still there while it runs.
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
  int64_t tick = 0;  // Each event has a tick of its own, as the arena needs it.
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

}  // namespace ckplan

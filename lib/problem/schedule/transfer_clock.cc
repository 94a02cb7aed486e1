#include "lib/problem/schedule/transfer_clock.h"

#include <algorithm>

namespace ckplan {
namespace {

Cost After(Cost time, Cost duration) { return std::min(time + duration, kLastMoment); }

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
  now_ = After(now_, table_.cost[static_cast<size_t>(kind)]);
  steps_.back().end = now_;
  // A run makes a version that is there at once.
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
  const Cost end = After(begin, link_.TimeOf(way, bytes));
  free = end;
  if (link_.duplex == Duplex::kHalf) free_[0] = free_[1] = end;
  copies_.push_back(
      {static_cast<int32_t>(steps_.size()) - 1, way, TensorId(value), bytes, begin, end});
  transferred_ += bytes;
}

}  // namespace ckplan

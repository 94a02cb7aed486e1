#include "lib/problem/schedule/timeline_sink.h"

#include <algorithm>
#include <utility>

namespace ckplan {
namespace {

constexpr int64_t kStillLive = -1;

}  // namespace

void TimelineSink::Allocate(int32_t /*buffer*/, int32_t value) {
  const Bytes bytes = table_.bytes[static_cast<size_t>(value)];
  index_of_.push_back(New({BufferKind::kTensor, TensorId(value), NodeId(), bytes}));
}

void TimelineSink::Make(int32_t value, int32_t buffer, int32_t last_read) {
  if (buffer == kNoBuffer) return;
  const int32_t index = index_of_[static_cast<size_t>(buffer)];
  timeline_.versions.push_back({TensorId(value), index, step_, last_read});
}

void TimelineSink::Work(int32_t kind) {
  const int32_t workspace = NewWorkspace(kind, NodeId(kind));
  if (workspace != kNoBuffer) End(workspace);
}

void TimelineSink::Release(int32_t buffer, int32_t /*value*/) {
  End(index_of_[static_cast<size_t>(buffer)]);
}

void TimelineSink::EndStep(int32_t /*kind*/) {
  timeline_.step_bytes.push_back(highest_);
  if (highest_ > timeline_.peak) {
    timeline_.peak = highest_;
    timeline_.peak_step = static_cast<size_t>(step_);
  }
  highest_ = live_;
  ++step_;
}

Timeline TimelineSink::Finish() && {
  --step_;
  for (size_t i = 0; i < timeline_.buffers.size(); ++i) {
    if (timeline_.buffers[i].end == kStillLive) End(static_cast<int32_t>(i));
  }
  return std::move(timeline_);
}

int32_t TimelineSink::New(Buffer buffer) {
  buffer.begin = tick_++;
  buffer.end = kStillLive;
  buffer.first_step = step_;
  live_ += buffer.bytes;
  highest_ = std::max(highest_, live_);
  timeline_.buffers.push_back(buffer);
  return static_cast<int32_t>(timeline_.buffers.size() - 1);
}

void TimelineSink::End(int32_t index) {
  Buffer& buffer = timeline_.buffers[static_cast<size_t>(index)];
  buffer.end = tick_++;
  buffer.last_step = step_;
  live_ -= buffer.bytes;
}

int32_t TimelineSink::NewWorkspace(int32_t kind, NodeId node) {
  const Bytes bytes = table_.workspace[static_cast<size_t>(kind)];
  if (bytes == Bytes(0)) return kNoBuffer;
  return New({BufferKind::kWorkspace, TensorId(), node, bytes});
}

}  // namespace ckplan

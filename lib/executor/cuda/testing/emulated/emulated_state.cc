#include "lib/executor/cuda/testing/emulated/emulated_state.h"

#include <utility>

#include "lib/base/check.h"

namespace ckplan::cuda {

cudaStream_t EmulatedStreams::AddStream() {
  were_used_ = true;
  auto stream = std::make_unique<EmulatedStream>();
  stream->is_first = streams_.empty();
  auto* const handle = reinterpret_cast<cudaStream_t>(stream.get());
  streams_.emplace(handle, std::move(stream));
  return handle;
}

EmulatedStream& EmulatedStreams::Find(cudaStream_t stream) {
  const auto found = streams_.find(stream);
  CKPLAN_CHECK(found != streams_.end(), "work goes to a live stream");
  return *found->second;
}

void EmulatedStreams::Remove(cudaStream_t stream) {
  Synchronize(stream);
  streams_.erase(stream);
}

void EmulatedStreams::Enqueue(cudaStream_t stream, std::function<void()> work) {
  EmulatedStream& found = Find(stream);
  if (found.captured) return found.captured->push_back(std::move(work));
  Add(stream, {std::move(work)});
}

void EmulatedStreams::Synchronize(cudaStream_t stream) {
  CheckNoCapture("no stream is synchronized while work is captured");
  RunUntil(stream, Find(stream).last());
}

void EmulatedStreams::CheckNoCapture(const char* why) const {
  for (const auto& [handle, stream] : streams_) CKPLAN_CHECK(!stream->captured, why);
}

void EmulatedStreams::BeginCapture(cudaStream_t stream) {
  CheckNoCapture("one stream is captured at a time");
  Find(stream).captured.emplace();
}

EmulatedWork EmulatedStreams::EndCapture(cudaStream_t stream) {
  std::optional<EmulatedWork>& captured = Find(stream).captured;
  CKPLAN_CHECK(captured.has_value(), "a capture begins before it ends");
  return *std::exchange(captured, std::nullopt);
}

void EmulatedStreams::EnqueueWait(cudaStream_t stream, cudaEvent_t event) {
  CheckNoCapture("streams don't wait for events while work is captured");
  const auto waited = Find(event);
  Find(stream);
  if (waited->stream != nullptr) Add(stream, {{}, waited->stream, waited->number});
}

cudaEvent_t EmulatedStreams::AddEvent() {
  auto event = std::make_shared<EmulatedEvent>();
  auto* const handle = reinterpret_cast<cudaEvent_t>(event.get());
  events_.emplace(handle, std::move(event));
  return handle;
}

std::shared_ptr<EmulatedEvent> EmulatedStreams::Find(cudaEvent_t event) {
  const auto found = events_.find(event);
  CKPLAN_CHECK(found != events_.end(), "an event is alive");
  return found->second;
}

void EmulatedStreams::Remove(cudaEvent_t event) {
  (void)Find(event);
  events_.erase(event);
}

void EmulatedStreams::Record(cudaEvent_t event, cudaStream_t stream) {
  const auto recorded = Find(event);
  recorded->time.reset();
  recorded->stream = Find(stream).captured ? nullptr : stream;
  recorded->number = Find(stream).last() + 1;
  Enqueue(stream, [recorded] { recorded->time = std::chrono::steady_clock::now(); });
}

int64_t EmulatedStreams::queued() const {
  int64_t queued = 0;
  for (const auto& [handle, stream] : streams_) {
    queued += static_cast<int64_t>(stream->work.size());
  }
  return queued;
}

void EmulatedStreams::Add(cudaStream_t stream, QueuedWork work) {
  EmulatedStream& found = Find(stream);
  found.work.push_back(std::move(work));
  if (!defers_work_) Synchronize(stream);
  if (hurries_ && !found.is_first) RunReady(found);
}

// Runs a stream's work up to this number, and everything that it waits for. The work of a destroyed
// stream has already run.
void EmulatedStreams::RunUntil(cudaStream_t stream, int64_t number) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  while (found->second->done < number && !found->second->work.empty()) RunNext(*found->second);
  if (!hurries_) return;
  for (const auto& [handle, other] : streams_) {
    if (!other->is_first) RunReady(*other);
  }
}

void EmulatedStreams::RunNext(EmulatedStream& stream) {
  const QueuedWork next = std::move(stream.work.front());
  stream.work.pop_front();
  if (next.run) next.run();
  if (next.other != nullptr) RunUntil(next.other, next.number);
  ++stream.done;
}

// Runs work that doesn't depend on pending work of other streams.
void EmulatedStreams::RunReady(EmulatedStream& stream) {
  const auto is_held_up = [&](const QueuedWork& work) {
    const auto other = streams_.find(work.other);
    return other != streams_.end() && other->second->done < work.number;
  };
  while (!stream.work.empty() && !is_held_up(stream.work.front())) RunNext(stream);
}

}  // namespace ckplan::cuda

// The streams and events of the emulated CUDA runtime.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace ckplan::cuda {

using PlayedWork = std::vector<std::function<void()>>;

struct QueuedWork {
  std::function<void()> run;
  // What the work waits for, if it is a wait: work up to this number, of another stream.
  cudaStream_t other = nullptr;
  int64_t number = 0;
};

struct PlayedStream {
  std::deque<QueuedWork> work;  // What is not done.
  int64_t done = 0;             // How much is done; the first work has the number 1.
  bool is_first = false;        // The one that computes.
  // The work that is captured instead of queued, while that goes on.
  std::optional<PlayedWork> captured;

  int64_t last() const { return done + static_cast<int64_t>(work.size()); }
};

// An event has a time once the work that was queued before it is done.
struct PlayedEvent {
  std::optional<std::chrono::steady_clock::time_point> time;
  cudaStream_t stream = nullptr;  // Where it was recorded last, and after which work.
  int64_t number = 0;
};

class PlayedStreams {
 public:
  // Work is done when it is waited for if `defers_work`, and otherwise at once. If `hurries`, all
  // streams but the first do their work as soon as what they wait for is done.
  PlayedStreams(bool defers_work, bool hurries) : defers_work_(defers_work), hurries_(hurries) {}

  cudaStream_t AddStream();
  PlayedStream& Find(cudaStream_t stream);
  void Remove(cudaStream_t stream);
  void Enqueue(cudaStream_t stream, std::function<void()> work);
  // Makes the stream's later work wait for what the event was recorded after, if it was.
  void EnqueueWait(cudaStream_t stream, cudaEvent_t event);
  void Synchronize(cudaStream_t stream);

  // Memory is neither taken nor freed, and nothing is waited for, while work is captured.
  void CheckNothingIsCaptured(const char* why) const;
  void BeginCapture(cudaStream_t stream);
  PlayedWork EndCapture(cudaStream_t stream);

  cudaEvent_t AddEvent();
  std::shared_ptr<PlayedEvent> Find(cudaEvent_t event);
  void Remove(cudaEvent_t event);
  void Record(cudaEvent_t event, cudaStream_t stream);

  bool were_used() const { return were_used_; }  // Whether there has been a stream.
  int64_t count() const { return static_cast<int64_t>(streams_.size()); }
  int64_t event_count() const { return static_cast<int64_t>(events_.size()); }
  int64_t queued() const;  // Work that is not done.

 private:
  void Add(cudaStream_t stream, QueuedWork work);
  void RunUntil(cudaStream_t stream, int64_t number);
  void RunNext(PlayedStream& stream);
  void Hurry(PlayedStream& stream);

  const bool defers_work_;
  const bool hurries_;
  bool were_used_ = false;
  std::map<cudaStream_t, std::unique_ptr<PlayedStream>> streams_;
  std::map<cudaEvent_t, std::shared_ptr<PlayedEvent>> events_;
};

}  // namespace ckplan::cuda

#include "lib/executor/cuda/testing/host/emulated_blocks.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

// This file is compiled without the thread sanitizer and reports synchronisation to it explicitly.
#ifdef CKPLAN_SANITIZES_THREADS
#include <sanitizer/tsan_interface.h>
#endif

namespace ckplan::cuda {

namespace {

#ifdef CKPLAN_SANITIZES_THREADS
constexpr bool kSanitizesThreads = true;
// Everything before HappensBefore(point) happens before everything after HappensAfter(point).
void HappensBefore(void* point) { __tsan_release(point); }
void HappensAfter(void* point) { __tsan_acquire(point); }
void* NewStack() { return __tsan_create_fiber(0); }
void* CurrentStack() { return __tsan_get_current_fiber(); }
void DeleteStack(void* stack) { __tsan_destroy_fiber(stack); }
void SwitchTo(void* stack) { __tsan_switch_to_fiber(stack, __tsan_switch_to_fiber_no_sync); }
#else
constexpr bool kSanitizesThreads = false;
void HappensBefore(void*) {}
void HappensAfter(void*) {}
void* NewStack() { return nullptr; }
void* CurrentStack() { return nullptr; }
void DeleteStack(void*) {}
void SwitchTo(void*) {}
#endif

constexpr size_t kWarp = 32;
constexpr size_t kStackBytes =
    size_t{64} << 10;  // Small, because the address sanitizer clears a stack when switching.

// CKPLAN_THREAD_ORDER is a number from which other orders of threads follow.
uint64_t ThreadOrderSeed() {
  static const uint64_t seed = [] {
    const char* const text = std::getenv("CKPLAN_THREAD_ORDER");
    return text == nullptr ? uint64_t{1} : std::strtoull(text, nullptr, 10);
  }();
  return seed * 0x9E3779B97F4A7C15U;
}

// A launch of a kernel. `begin` and `end` are the synchronisation objects that the thread sanitizer
// knows: every thread starts after `begin` and finishes before `end`.
struct Launch {
  const std::function<void()>* kernel = nullptr;
  int64_t blocks = 0;
  size_t threads = 0;
  bool has_barriers = true;
  char begin = 0, end = 0;
};

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

// A barrier of all threads in a block or a warp. It alternates between two synchronisation objects,
// because the first thread to pass may reach the barrier again before the last one has left.
struct Barrier {
  char points[2] = {0, 0};
  size_t passed = 0;
  void* point() { return &points[passed % 2]; }
};

// Where an emulated thread, or the host thread that runs it, continues.
struct Context {
  ucontext_t entry{};
#ifndef CKPLAN_SANITIZED
  jmp_buf paused{};
  bool is_entered = false;
#endif
};

// Pauses `from`, the caller's context, and continues `to`. swapcontext makes a system call for the
// signal mask at each switch, which takes most of the time of a kernel with barriers. So setcontext
// enters a stack once, and _longjmp returns to it afterwards. Sanitizers only support swapcontext.
void Switch(Context& from, Context& to) {
#ifdef CKPLAN_SANITIZED
  swapcontext(&from.entry, &to.entry);
#else
  from.is_entered = true;
  if (_setjmp(from.paused) != 0) return;
  if (to.is_entered) _longjmp(to.paused, 1);
  setcontext(&to.entry);
#endif
}

struct EmulatedThread {
  explicit EmulatedThread(void (*begin)())
      : memory(std::make_unique<char[]>(kStackBytes)), stack(NewStack()) {
    getcontext(&context.entry);
    context.entry.uc_stack.ss_sp = memory.get();
    context.entry.uc_stack.ss_size = kStackBytes;
    makecontext(&context.entry, begin, 0);
  }
  ~EmulatedThread() { DeleteStack(stack); }
  EmulatedThread(const EmulatedThread&) = delete;
  EmulatedThread& operator=(const EmulatedThread&) = delete;

  std::unique_ptr<char[]> memory;
  void* stack;  // The thread sanitizer's fiber.
  Context context;
  State state = State::kDone;
};

// Runs one block at a time on one host thread.
class BlockPlayer {
 public:
  // Runs every `step`-th block, starting with `first`.
  void Play(Launch& launch, int64_t first, int64_t step) {
    launch_ = &launch;
    own_stack_ = CurrentStack();
    gridDim.x = static_cast<unsigned>(launch.blocks);
    Grow(launch.threads);
    warps_.assign((launch.threads + kWarp - 1) / kWarp, {});
    block_ = {};
    for (int64_t block = first; block < launch.blocks; block += step) {
      blockIdx.x = static_cast<unsigned>(block);
      if (kSanitizesThreads || launch.has_barriers) {
        PlayBlock();
      } else {
        PlayFreeThreads();
      }
    }
  }

  void Wait(State state) {
    CKPLAN_CHECK(launch_->has_barriers, "a launch with barriers declares them");
    EmulatedThread& thread = *threads_[current_];
    Barrier& barrier = state == State::kAtBlockBarrier ? block_ : warps_[current_ / kWarp];
    void* point = barrier.point();
    thread.state = state;
    HappensBefore(point);
    Pause();
    HappensAfter(point);
  }

 private:
  size_t count() const { return launch_->threads; }

  void Grow(size_t count) {
    while (threads_.size() < count) {
      threads_.push_back(std::make_unique<EmulatedThread>(&BlockPlayer::Begin));
    }
  }

  // The body of an emulated thread: runs the kernel for one block after another.
  static void Begin();
  [[noreturn]] void RunThread() {
    for (;;) {
      HappensAfter(&launch_->begin);
      (*launch_->kernel)();
      HappensBefore(&launch_->end);
      threads_[current_]->state = State::kDone;
      Pause();
    }
  }

  // Switches back to PlayBlock.
  void Pause() {
    Context& context = threads_[current_]->context;
    SwitchTo(own_stack_);
    Switch(context, own_context_);
  }

  // Draws the order in which the threads run up to their next barrier, from the numbers of block
  // and round, so that a kernel that wrongly relies on the work of other threads fails its test.
  void DrawOrder(size_t round) {
    order_.resize(count());
    std::iota(order_.begin(), order_.end(), size_t{0});
    uint64_t state = (uint64_t{blockIdx.x} << 32 | round) + ThreadOrderSeed();
    for (size_t left = count(); left > 1; --left) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      std::swap(order_[left - 1], order_[static_cast<size_t>(state >> 33) % left]);
    }
  }

  void PlayBlock() {
    for (size_t i = 0; i < count(); ++i) threads_[i]->state = State::kReady;
    size_t round = 0;
    do {
      DrawOrder(round++);
      for (const size_t i : order_) {
        if (threads_[i]->state != State::kReady) continue;
        current_ = i;
        threadIdx.x = static_cast<unsigned>(i);
        SwitchTo(threads_[i]->stack);
        Switch(own_context_, threads_[i]->context);
      }
    } while (OpenBarriers());
  }

  void PlayFreeThreads() {
    if (order_.size() != count()) DrawOrder(0);
    for (const size_t i : order_) {
      threadIdx.x = static_cast<unsigned>(i);
      (*launch_->kernel)();
    }
  }

  // Opens each barrier that all its threads have reached. Returns whether any thread can continue.
  bool OpenBarriers() {
    if (All(0, count(), State::kDone)) return false;
    bool any = OpenBarrier(0, count(), State::kAtBlockBarrier, block_);
    for (size_t warp = 0; warp < warps_.size(); ++warp) {
      const size_t first = warp * kWarp;
      any |=
          OpenBarrier(first, std::min(first + kWarp, count()), State::kAtWarpBarrier, warps_[warp]);
    }
    CKPLAN_CHECK(any, "every thread of a block reaches the barrier");
    return true;
  }

  bool OpenBarrier(size_t first, size_t last, State state, Barrier& barrier) {
    if (!All(first, last, state)) return false;
    ++barrier.passed;
    for (size_t i = first; i < last; ++i) threads_[i]->state = State::kReady;
    return true;
  }

  bool All(size_t first, size_t last, State state) const {
    return std::all_of(threads_.begin() + static_cast<std::ptrdiff_t>(first),
                       threads_.begin() + static_cast<std::ptrdiff_t>(last),
                       [state](const auto& thread) { return thread->state == state; });
  }

  Launch* launch_ = nullptr;
  void* own_stack_ = nullptr;
  Context own_context_;
  std::vector<std::unique_ptr<EmulatedThread>> threads_;
  std::vector<Barrier> warps_;
  Barrier block_;
  size_t current_ = 0;
  std::vector<size_t> order_;  // The threads' order in the current round.
};

BlockPlayer& ThreadPlayer() {
  static thread_local BlockPlayer player;
  return player;
}

void BlockPlayer::Begin() { ThreadPlayer().RunThread(); }

// Runs every second block on a permanent second host thread.
class SecondWorker {
 public:
  SecondWorker() : thread_([this] { Serve(); }) {}
  ~SecondWorker() {
    Assign(nullptr, true);
    thread_.join();
  }

  void Start(Launch& launch) { Assign(&launch, false); }
  void Finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return launch_ == nullptr; });
  }

 private:
  void Assign(Launch* launch, bool ends) {
    const std::lock_guard<std::mutex> lock(mutex_);
    launch_ = launch;
    ends_ = ends;
    changed_.notify_all();
  }

  void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return launch_ != nullptr || ends_; });
      if (ends_) return;
      ThreadPlayer().Play(*launch_, 1, 2);
      launch_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Launch* launch_ = nullptr;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace

void PlayBlocks(int64_t blocks, int64_t threads, bool has_barriers,
                const std::function<void()>& kernel) {
  static SecondWorker second;
  Launch launch{&kernel, blocks, static_cast<size_t>(threads), has_barriers};
  HappensBefore(&launch.begin);
  if (blocks > 1) second.Start(launch);
  ThreadPlayer().Play(launch, 0, 2);
  if (blocks > 1) second.Finish();
  HappensAfter(&launch.end);
}

void EnqueueBlocks(void* stream, int64_t blocks, int64_t threads, bool has_barriers,
                   const std::function<void()>& kernel) {
  EnqueueEmulatedKernel(static_cast<cudaStream_t>(stream), blocks, threads,
                        [=] { PlayBlocks(blocks, threads, has_barriers, kernel); });
}

void WaitForBlock() { ThreadPlayer().Wait(State::kAtBlockBarrier); }
void WaitForWarp() { ThreadPlayer().Wait(State::kAtWarpBarrier); }

}  // namespace ckplan::cuda

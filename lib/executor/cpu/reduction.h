// Reductions along axes: sums, maxima, products, and the sums that reduce a broadcast operand's
// gradient to the operand's shape. The order of every sum depends only on the shapes, never on the
// number of threads.
//
// Elements are divided into runs of at most kTile along the inner axis. If that axis is kept, runs
// are added to a row of sums; if it is reduced, each run becomes one number. A few long sums are
// divided into parts whose results go to the workspace.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "lib/executor/cpu/strided_copy.h"

namespace ckplan::cpu {

// Sums in eight lanes, merged in double precision.
struct SumOf {
  static constexpr double kIdentity = 0;
  static double Merge(double a, double b) { return a + b; }
  static float MergeLane(float a, float b) { return a + b; }
};
struct MaxOf {
  static constexpr double kIdentity = -std::numeric_limits<double>::infinity();
  static double Merge(double a, double b) { return a < b || b != b ? b : a; }
  static float MergeLane(float a, float b) { return a < b || b != b ? b : a; }
};
struct MinOf {
  static constexpr double kIdentity = std::numeric_limits<double>::infinity();
  static double Merge(double a, double b) { return a > b || b != b ? b : a; }
  static float MergeLane(float a, float b) { return a > b || b != b ? b : a; }
};
struct ProductOf {
  static constexpr double kIdentity = 1;
  static double Merge(double a, double b) { return a * b; }
  static float MergeLane(float a, float b) { return a * b; }
};

class Reduction {
 public:
  static constexpr int64_t kTile = 512;

  Reduction() = default;
  // `target` is the result's position among the layout's operands; axes with stride 0 in it are
  // reduced.
  Reduction(Layout layout, size_t target);

  const Layout& layout() const { return layout_; }
  int64_t workspace() const;  // Size in bytes.

  // segment(offsets, length, buffer) returns a pointer to a run's values. It may fill `buffer`
  // (kTile floats) and return it. finish(value, i) computes result i, a float.
  template <typename Combiner, typename Segment, typename Finish>
  void Run(float* result, void* workspace, const Segment& segment, const Finish& finish) const;

  template <typename Combiner, typename Segment>
  void Run(float* result, void* workspace, const Segment& segment) const {
    Run<Combiner>(result, workspace, segment,
                  [](double value, int64_t) { return static_cast<float>(value); });
  }

 private:
  struct Axes {
    Dims dims;                  // Without the inner axis.
    std::vector<Dims> strides;  // One per operand.
    int64_t count() const { return Product(dims); }
    void AddOffsets(int64_t index, Dims& offsets) const;
  };

  // A row of results, and the elements that this task combines into it.
  struct Task {
    int64_t row, tile, part;
  };

  template <typename Combiner, typename Segment>
  void RunTask(const Task& task, const Segment& segment, double* sums) const;

  Layout layout_;
  Axes kept_, reduced_;
  bool is_inner_kept_ = false;
  int64_t results_ = 1;  // Results along the kept axes.
  int64_t tiles_ = 1;    // Tiles of the inner axis.
  int64_t steps_ = 1;    // Runs combined into one row of results.
  int64_t parts_ = 1;
};

template <typename Combiner>
double FoldRun(const float* values, int64_t length) {
  constexpr int64_t kLanes = 8;
  std::array<float, kLanes> lanes;
  lanes.fill(static_cast<float>(Combiner::kIdentity));
  int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      auto& lane = lanes[static_cast<size_t>(k)];
      lane = Combiner::MergeLane(lane, values[i + k]);
    }
  }
  double result = Combiner::kIdentity;
  for (const float lane : lanes) result = Combiner::Merge(result, static_cast<double>(lane));
  for (; i < length; ++i) result = Combiner::Merge(result, static_cast<double>(values[i]));
  return result;
}

template <typename Combiner, typename Segment>
void Reduction::RunTask(const Task& task, const Segment& segment, double* sums) const {
  std::array<float, kTile> buffer;
  const size_t operands = layout_.strides.size();
  const int64_t inner = layout_.inner();
  const int64_t width = is_inner_kept_ ? std::min(kTile, inner - task.tile * kTile) : 1;
  std::fill(sums, sums + width, Combiner::kIdentity);
  Dims row(operands, 0);
  kept_.AddOffsets(task.row, row);
  Dims offsets;
  const int64_t first = steps_ * task.part / parts_;
  const int64_t last = steps_ * (task.part + 1) / parts_;
  for (int64_t step = first; step < last; ++step) {
    const int64_t tile = is_inner_kept_ ? task.tile : step % tiles_;
    const int64_t length = std::min(kTile, inner - tile * kTile);
    offsets = row;
    reduced_.AddOffsets(is_inner_kept_ ? step : step / tiles_, offsets);
    for (size_t k = 0; k < operands; ++k) offsets[k] += tile * kTile * layout_.inner_stride(k);
    const float* values =
        segment(static_cast<const int64_t*>(offsets.data()), length, buffer.data());
    if (is_inner_kept_) {
      for (int64_t i = 0; i < length; ++i) {
        sums[i] = Combiner::Merge(sums[i], static_cast<double>(values[i]));
      }
    } else {
      sums[0] = Combiner::Merge(sums[0], FoldRun<Combiner>(values, length));
    }
  }
}

template <typename Combiner, typename Segment, typename Finish>
void Reduction::Run(float* result, void* workspace, const Segment& segment,
                    const Finish& finish) const {
  if (layout_.count() == 0) {
    for (int64_t i = 0; i < results_; ++i) result[i] = finish(Combiner::kIdentity, i);
    return;
  }
  const int64_t row_tiles = is_inner_kept_ ? tiles_ : 1;
  const int64_t row_width = is_inner_kept_ ? layout_.inner() : 1;
  const int64_t tasks = kept_.count() * row_tiles * parts_;
  const int64_t work = std::max<int64_t>(1, layout_.count() / std::max<int64_t>(1, tasks));
  ParallelFor(tasks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    std::array<double, kTile> sums;
    for (int64_t i = begin; i < end; ++i) {
      const Task task{i / parts_ / row_tiles, i / parts_ % row_tiles, i % parts_};
      RunTask<Combiner>(task, segment, sums.data());
      const int64_t first = task.row * row_width + task.tile * kTile;
      const int64_t width = std::min(kTile, row_width - task.tile * kTile);
      if (parts_ > 1) {
        std::memcpy(static_cast<double*>(workspace) + task.part * results_ + first, sums.data(),
                    static_cast<size_t>(width) * sizeof(double));
        continue;
      }
      for (int64_t k = 0; k < width; ++k) {
        result[first + k] = finish(sums[static_cast<size_t>(k)], first + k);
      }
    }
  });
  if (parts_ == 1) return;
  const auto* parts = static_cast<const double*>(workspace);
  for (int64_t i = 0; i < results_; ++i) {
    double value = parts[i];
    for (int64_t part = 1; part < parts_; ++part) {
      value = Combiner::Merge(value, parts[part * results_ + i]);
    }
    result[i] = finish(value, i);
  }
}

}  // namespace ckplan::cpu

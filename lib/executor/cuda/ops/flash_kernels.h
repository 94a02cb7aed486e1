// Kernels of fused attention, which never store the scores. A block of threads has some rows of one
// head in shared memory, 16 for each warp, and goes through the rows of the other side tile by
// tile:
//
//   forward     rows of queries, tiles of keys: the highest score and the sum so far are running
//   queries     rows of queries, tiles of keys: P = e^(S - L), dS = P (dY Vᵀ - D), dQ += dS K
//   keys        rows of keys, tiles of queries: dV += Pᵀ dY, dK += dSᵀ Q
//   terms       rows of queries and one tile of keys: sums dS over samples and heads
//
// L is the logarithm of a row's sum of exponentials, D the dot product of rows of Y and dY. All
// sums have one order, so the results do not depend on how blocks are scheduled.
#pragma once

#include "lib/executor/cuda/ops/flash_tiles.h"

namespace ckplan::cuda {

// ---- Forward ------------------------------------------------------------------------------------

template <typename T, int kSize>
__global__ void __launch_bounds__(FlashThreads(ForwardTiles<T, kSize>::kRows))
    FlashForwardKernel(FlashTask task) {
  constexpr int kRows = ForwardTiles<T, kSize>::kRows;
  constexpr int kSpan = ForwardTiles<T, kSize>::kSpan;
  constexpr int kFlashThreads = FlashThreads(kRows);
  constexpr int kKeyTiles = kSpan / kMmaColumns;
  alignas(16) __shared__ SharedRows<T, kRows, kSize> q;
  alignas(16) __shared__ SharedRows<T, kSpan, kSize> other;  // Keys, then values.
  alignas(16) __shared__ SharedRows<T, kRows, kSpan> p;
  __shared__ float partial[kRows * 4];
  const FlashLane own;
  const int64_t blocks_of_head = CeilDiv(task.queries, kRows);
  const int64_t blocks = task.batch * task.heads * blocks_of_head;
  for (int64_t index = blockIdx.x; index < blocks; index += gridDim.x) {
    const FlashBlock block(index, task.heads, blocks_of_head, kRows);
    const int64_t key_head = block.head / task.group();
    const FlashMask masks[2] = {
        FlashMask(task, block.sample, block.head, block.first + own.Row(0)),
        FlashMask(task, block.sample, block.head, block.first + own.Row(1))};
    float highest[2] = {-HUGE_VALF, -HUGE_VALF};
    float sum[2] = {0, 0};
    float output[kSize / kMmaColumns][4];
    Clear(output);
    LoadRows<kFlashThreads>(
        static_cast<const T*>(task.q) + task.q_rows.At(block.sample, block.head, block.first),
        task.q_rows.row_stride, task.size, task.queries - block.first, task.is_wide, q);
    const int64_t end = task.is_causal ? Min(task.keys, block.first + kRows) : task.keys;
    for (int64_t first = 0; first < end; first += kSpan) {
      LoadRows<kFlashThreads>(
          static_cast<const T*>(task.k) + task.k_rows.At(block.sample, key_head, first),
          task.k_rows.row_stride, task.size, task.keys - first, task.is_wide, other);
      __syncthreads();
      float scores[kKeyTiles][4];
      Clear(scores);
      MultiplyTile<kSize, kKeyTiles, FactorOrder::kByColumn>(
          task.is_tf32, q.Row(own.first), q.kStride, other.at, other.kStride, own.lane, scores);
      float reached[2] = {highest[0], highest[1]};
      CKPLAN_UNROLL
      for (int tile = 0; tile < kKeyTiles; ++tile) {
        CKPLAN_UNROLL
        for (int i = 0; i < 4; ++i) {
          float& score = scores[tile][i];
          score = masks[i / 2].Apply(task, first + own.Column(tile, i), score).value;
          reached[i / 2] = LargerOf()(reached[i / 2], score);
        }
      }
      ReduceRows(own, partial, LargerOf(), reached);
      CKPLAN_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float shrink =
            reached[half] == highest[half] ? 1 : Exp(highest[half] - reached[half]);
        highest[half] = reached[half];
        sum[half] *= shrink;
        CKPLAN_UNROLL
        for (int tile = 0; tile < kSize / kMmaColumns; ++tile) {
          output[tile][2 * half] *= shrink;
          output[tile][2 * half + 1] *= shrink;
        }
      }
      CKPLAN_UNROLL
      for (int tile = 0; tile < kKeyTiles; ++tile) {
        CKPLAN_UNROLL
        for (int i = 0; i < 4; ++i) {
          float& score = scores[tile][i];
          score = highest[i / 2] == -HUGE_VALF ? 0 : Exp(score - highest[i / 2]);
          sum[i / 2] += score;
        }
      }
      ShareTile(own, scores, p);
      __syncthreads();  // All warps have read the keys.
      LoadRows<kFlashThreads>(
          static_cast<const T*>(task.v) + task.v_rows.At(block.sample, key_head, first),
          task.v_rows.row_stride, task.value_size, task.keys - first, task.is_wide, other);
      __syncthreads();
      MultiplyTile<kSpan, kSize / kMmaColumns, FactorOrder::kByRow>(
          task.is_tf32, p.Row(own.first), p.kStride, other.at, other.kStride, own.lane, output);
      __syncthreads();
    }
    ReduceRows(own, partial, SumOf(), sum);
    const float scale[2] = {sum[0] > 0 ? 1 / sum[0] : (sum[0] == 0 ? 0 : sum[0]),
                            sum[1] > 0 ? 1 / sum[1] : (sum[1] == 0 ? 0 : sum[1])};
    if (task.y != nullptr) {
      StoreRows(own, output, scale,
                static_cast<T*>(task.y) + task.y_rows.At(block.sample, block.head, block.first),
                task.y_rows.row_stride, task.value_size, task.queries - block.first);
    }
    CKPLAN_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t query = block.first + own.Row(half);
      if (task.log_sums == nullptr || query >= task.queries || own.lane % 4 != 0) continue;
      // A row without keys has probabilities of zero in backward as well.
      task.log_sums[task.Row(block.sample, block.head, query)] =
          sum[half] == 0 ? HUGE_VALF : highest[half] + logf(sum[half]);
    }
    __syncthreads();
  }
}

// ---- Backward -----------------------------------------------------------------------------------

// Turns products Q Kᵀ into P, and products dY Vᵀ into dS. `row_is_query` says which side is along
// the rows of the tile.
template <int kTiles>
CKPLAN_DEVICE void ScoreGradients(const FlashTask& task, const FlashLane& own,
                                  const FlashMask (&masks)[2], const float (&log_sums)[2],
                                  const float (&dots)[2], int64_t first_key,
                                  float (&scores)[kTiles][4], float (&gradients)[kTiles][4]) {
  CKPLAN_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) {
    CKPLAN_UNROLL
    for (int i = 0; i < 4; ++i) {
      const FlashScore score =
          masks[i / 2].Apply(task, first_key + own.Column(tile, i), scores[tile][i]);
      const float p = score.value == -HUGE_VALF ? 0 : Exp(score.value - log_sums[i / 2]);
      scores[tile][i] = p;
      gradients[tile][i] = score.is_passed ? p * (gradients[tile][i] - dots[i / 2]) : 0;
    }
  }
}

// Reads L and D of the rows of queries of a thread.
CKPLAN_DEVICE inline void ReadRows(const FlashTask& task, const FlashBlock& block,
                                   const FlashLane& own, float (&log_sums)[2], float (&dots)[2]) {
  CKPLAN_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t query = block.first + own.Row(half);
    const bool is_there = query < task.queries;
    const int64_t row = is_there ? task.Row(block.sample, block.head, query) : 0;
    log_sums[half] = is_there ? task.log_sums[row] : HUGE_VALF;
    dots[half] = is_there ? task.dots[row] : 0;
  }
}

// The rows of queries of a block and a tile of keys, with all that dS is made from.
template <typename T, int kRows, int kSpan, int kSize>
struct QueryTiles {
  SharedRows<T, kRows, kSize> q, dy;
  SharedRows<T, kSpan, kSize> k, v;

  template <int kFlashThreads>
  CKPLAN_DEVICE void LoadQueries(const FlashTask& task, const FlashBlock& block) {
    const int64_t count = task.queries - block.first;
    LoadRows<kFlashThreads>(
        static_cast<const T*>(task.q) + task.q_rows.At(block.sample, block.head, block.first),
        task.q_rows.row_stride, task.size, count, task.is_wide, q);
    LoadRows<kFlashThreads>(
        static_cast<const T*>(task.dy) + task.y_rows.At(block.sample, block.head, block.first),
        task.y_rows.row_stride, task.value_size, count, task.is_wide, dy);
  }
  template <int kFlashThreads>
  CKPLAN_DEVICE void LoadKeys(const FlashTask& task, const FlashBlock& block, int64_t first) {
    const int64_t key_head = block.head / task.group();
    LoadRows<kFlashThreads>(
        static_cast<const T*>(task.k) + task.k_rows.At(block.sample, key_head, first),
        task.k_rows.row_stride, task.size, task.keys - first, task.is_wide, k);
    LoadRows<kFlashThreads>(
        static_cast<const T*>(task.v) + task.v_rows.At(block.sample, key_head, first),
        task.v_rows.row_stride, task.value_size, task.keys - first, task.is_wide, v);
  }

  CKPLAN_DEVICE void Gradients(const FlashTask& task, const FlashBlock& block, const FlashLane& own,
                               int64_t first_key, float (&gradients)[kSpan / kMmaColumns][4]) {
    const FlashMask masks[2] = {
        FlashMask(task, block.sample, block.head, block.first + own.Row(0)),
        FlashMask(task, block.sample, block.head, block.first + own.Row(1))};
    float log_sums[2], dots[2];
    ReadRows(task, block, own, log_sums, dots);
    float scores[kSpan / kMmaColumns][4];
    Clear(scores);
    Clear(gradients);
    MultiplyTile<kSize, kSpan / kMmaColumns, FactorOrder::kByColumn>(
        task.is_tf32, q.Row(own.first), q.kStride, k.at, k.kStride, own.lane, scores);
    MultiplyTile<kSize, kSpan / kMmaColumns, FactorOrder::kByColumn>(
        task.is_tf32, dy.Row(own.first), dy.kStride, v.at, v.kStride, own.lane, gradients);
    ScoreGradients(task, own, masks, log_sums, dots, first_key, scores, gradients);
  }
};

template <typename T, int kSize>
__global__ void __launch_bounds__(FlashThreads(BackwardTiles<T, kSize>::kRows))
    FlashQueriesKernel(FlashTask task) {
  constexpr int kRows = BackwardTiles<T, kSize>::kRows;
  constexpr int kSpan = BackwardTiles<T, kSize>::kSpan;
  constexpr int kFlashThreads = FlashThreads(kRows);
  alignas(16) __shared__ QueryTiles<T, kRows, kSpan, kSize> tiles;
  alignas(16) __shared__ SharedRows<T, kRows, kSpan> ds;
  const FlashLane own;
  const int64_t blocks_of_head = CeilDiv(task.queries, kRows);
  const int64_t blocks = task.batch * task.heads * blocks_of_head;
  for (int64_t index = blockIdx.x; index < blocks; index += gridDim.x) {
    const FlashBlock block(index, task.heads, blocks_of_head, kRows);
    float dq[kSize / kMmaColumns][4];
    Clear(dq);
    tiles.template LoadQueries<kFlashThreads>(task, block);
    const int64_t end = task.is_causal ? Min(task.keys, block.first + kRows) : task.keys;
    for (int64_t first = 0; first < end; first += kSpan) {
      tiles.template LoadKeys<kFlashThreads>(task, block, first);
      __syncthreads();
      float gradients[kSpan / kMmaColumns][4];
      tiles.Gradients(task, block, own, first, gradients);
      ShareTile(own, gradients, ds);
      MultiplyTile<kSpan, kSize / kMmaColumns, FactorOrder::kByRow>(
          task.is_tf32, ds.Row(own.first), ds.kStride, tiles.k.at, tiles.k.kStride, own.lane, dq);
      __syncthreads();
    }
    const float scale[2] = {task.scale, task.scale};
    StoreRows(own, dq, scale,
              static_cast<T*>(task.dq) + task.q_rows.At(block.sample, block.head, block.first),
              task.q_rows.row_stride, task.size, task.queries - block.first);
  }
}

// The rows of keys of a block and a tile of queries.
template <typename T, int kSize>
__global__ void __launch_bounds__(FlashThreads(BackwardTiles<T, kSize>::kRows))
    FlashKeysKernel(FlashTask task) {
  constexpr int kRows = BackwardTiles<T, kSize>::kRows;
  constexpr int kSpan = BackwardTiles<T, kSize>::kSpan;
  constexpr int kFlashThreads = FlashThreads(kRows);
  constexpr int kTiles = kSpan / kMmaColumns;
  alignas(16) __shared__ SharedRows<T, kRows, kSize> k, v;
  alignas(16) __shared__ SharedRows<T, kSpan, kSize> q, dy;
  alignas(16) __shared__ SharedRows<T, kRows, kSpan> shared;  // Pᵀ, then dSᵀ.
  const FlashLane own;
  const int64_t blocks_of_head = CeilDiv(task.keys, kRows);
  const int64_t blocks = task.batch * task.key_heads * blocks_of_head;
  for (int64_t index = blockIdx.x; index < blocks; index += gridDim.x) {
    const FlashBlock block(index, task.key_heads, blocks_of_head, kRows);
    const int64_t count = task.keys - block.first;
    float dk[kSize / kMmaColumns][4], dv[kSize / kMmaColumns][4];
    Clear(dk);
    Clear(dv);
    const int64_t k_at = task.k_rows.At(block.sample, block.head, block.first);
    const int64_t v_at = task.v_rows.At(block.sample, block.head, block.first);
    LoadRows<kFlashThreads>(static_cast<const T*>(task.k) + k_at, task.k_rows.row_stride, task.size,
                            count, task.is_wide, k);
    LoadRows<kFlashThreads>(static_cast<const T*>(task.v) + v_at, task.v_rows.row_stride,
                            task.value_size, count, task.is_wide, v);
    // The first query that sees a key of the block.
    const int64_t begin = task.is_causal ? block.first / kSpan * kSpan : 0;
    for (int64_t part = 0; part < task.group(); ++part) {
      const int64_t head = block.head * task.group() + part;
      for (int64_t first = begin; first < task.queries; first += kSpan) {
        const int64_t left = task.queries - first;
        LoadRows<kFlashThreads>(
            static_cast<const T*>(task.q) + task.q_rows.At(block.sample, head, first),
            task.q_rows.row_stride, task.size, left, task.is_wide, q);
        LoadRows<kFlashThreads>(
            static_cast<const T*>(task.dy) + task.y_rows.At(block.sample, head, first),
            task.y_rows.row_stride, task.value_size, left, task.is_wide, dy);
        __syncthreads();
        float p[kTiles][4], ds[kTiles][4];
        Clear(p);
        Clear(ds);
        MultiplyTile<kSize, kTiles, FactorOrder::kByColumn>(
            task.is_tf32, k.Row(own.first), k.kStride, q.at, q.kStride, own.lane, p);
        MultiplyTile<kSize, kTiles, FactorOrder::kByColumn>(
            task.is_tf32, v.Row(own.first), v.kStride, dy.at, dy.kStride, own.lane, ds);
        CKPLAN_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          CKPLAN_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int64_t query = first + own.Column(tile, i);
            const int64_t row = task.Row(block.sample, head, Min(query, task.queries - 1));
            const FlashScore score = FlashMask(task, block.sample, head, Min(query, task.queries))
                                         .Apply(task, block.first + own.Row(i / 2), p[tile][i]);
            p[tile][i] = score.value == -HUGE_VALF ? 0 : Exp(score.value - task.log_sums[row]);
            ds[tile][i] = score.is_passed ? p[tile][i] * (ds[tile][i] - task.dots[row]) : 0;
          }
        }
        if (task.dv != nullptr) {
          ShareTile(own, p, shared);
          MultiplyTile<kSpan, kSize / kMmaColumns, FactorOrder::kByRow>(
              task.is_tf32, shared.Row(own.first), shared.kStride, dy.at, dy.kStride, own.lane, dv);
        }
        if (task.dk != nullptr) {
          ShareTile(own, ds, shared);
          MultiplyTile<kSpan, kSize / kMmaColumns, FactorOrder::kByRow>(
              task.is_tf32, shared.Row(own.first), shared.kStride, q.at, q.kStride, own.lane, dk);
        }
        __syncthreads();
      }
    }
    const float scale[2] = {task.scale, task.scale};
    const float one[2] = {1, 1};
    if (task.dk != nullptr) {
      StoreRows(own, dk, scale, static_cast<T*>(task.dk) + k_at, task.k_rows.row_stride, task.size,
                count);
    }
    if (task.dv != nullptr) {
      StoreRows(own, dv, one, static_cast<T*>(task.dv) + v_at, task.v_rows.row_stride,
                task.value_size, count);
    }
    __syncthreads();
  }
}

// Sums dS over the samples and heads for which an element of a term serves.
struct FlashTermGradient {
  FloatsOut gradient;
  int64_t samples = 1, heads = 1;  // The term's sizes.
};

template <typename T, int kSize>
__global__ void __launch_bounds__(FlashThreads(BackwardTiles<T, kSize>::kRows))
    FlashTermKernel(FlashTask task, FlashTermGradient term) {
  constexpr int kRows = BackwardTiles<T, kSize>::kRows;
  constexpr int kSpan = BackwardTiles<T, kSize>::kSpan;
  constexpr int kFlashThreads = FlashThreads(kRows);
  constexpr int kTiles = kSpan / kMmaColumns;
  alignas(16) __shared__ QueryTiles<T, kRows, kSpan, kSize> tiles;
  const FlashLane own;
  const int64_t across = CeilDiv(task.keys, kSpan);
  const int64_t down = CeilDiv(task.queries, kRows);
  const int64_t blocks = term.samples * term.heads * down * across;
  for (int64_t index = blockIdx.x; index < blocks; index += gridDim.x) {
    const FlashBlock of_term(index / across, term.heads, down, kRows);
    const int64_t first_key = index % across * kSpan;
    float sums[kTiles][4];
    Clear(sums);
    for (int64_t sample = of_term.sample; sample < task.batch; sample += term.samples) {
      const int64_t last_head = term.heads == 1 ? task.heads - 1 : of_term.head;
      for (int64_t head = of_term.head; head <= last_head; ++head) {
        FlashBlock block = of_term;
        block.sample = sample;
        block.head = head;
        tiles.template LoadQueries<kFlashThreads>(task, block);
        tiles.template LoadKeys<kFlashThreads>(task, block, first_key);
        __syncthreads();
        float gradients[kTiles][4];
        tiles.Gradients(task, block, own, first_key, gradients);
        CKPLAN_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          CKPLAN_UNROLL
          for (int i = 0; i < 4; ++i) sums[tile][i] += gradients[tile][i];
        }
        __syncthreads();
      }
    }
    const int64_t matrix = (of_term.sample * term.heads + of_term.head) * task.queries;
    CKPLAN_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      CKPLAN_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int64_t query = of_term.first + own.Row(i / 2);
        const int64_t key = first_key + own.Column(tile, i);
        if (query >= task.queries || key >= task.keys) continue;
        term.gradient.Set((matrix + query) * task.keys + key, sums[tile][i]);
      }
    }
  }
}

}  // namespace ckplan::cuda

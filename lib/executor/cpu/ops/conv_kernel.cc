#include "lib/executor/cpu/ops/conv_kernel.h"

#include <algorithm>
#include <array>
#include <string>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

using Desc = dnnl::memory::desc;

// The minimum size of x and y in bytes for converting layouts chunk by chunk.
constexpr int64_t kChunkBytes = int64_t{4} << 20;

// The primitive and layouts that oneDNN prefers for a chunk of samples.
struct BlockedChoice {
  DnnlPrimitive primitive;
  Desc x, w, y;
  std::string kernel;  // The name of oneDNN's implementation.
};

BlockedChoice ChooseBlocked(const DnnlDevice& device, ConvJob job, const Window& window,
                            const Dims& x_dims, const Dims& w_dims, const Dims& y_dims) {
  const auto any = [](const Dims& dims) {
    return Desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  };
  Dims gaps = window.dilations;
  for (int64_t& gap : gaps) --gap;  // oneDNN's dilation counts only the skipped elements.
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto attributes = ScratchpadAttributes();
  const dnnl::convolution_forward::primitive_desc forward(
      device.engine, dnnl::prop_kind::forward_training, direct, any(x_dims), any(w_dims),
      any(y_dims), window.strides, gaps, window.begin, window.end, attributes);
  switch (job) {
    case ConvJob::kForward:
      return {DnnlPrimitive::Of<dnnl::convolution_forward>(forward), forward.src_desc(),
              forward.weights_desc(), forward.dst_desc(), forward.impl_info_str()};
    case ConvJob::kBackwardData: {
      const dnnl::convolution_backward_data::primitive_desc backward(
          device.engine, direct, any(x_dims), any(w_dims), any(y_dims), window.strides, gaps,
          window.begin, window.end, forward, attributes);
      return {DnnlPrimitive::Of<dnnl::convolution_backward_data>(backward),
              backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc(),
              backward.impl_info_str()};
    }
    case ConvJob::kBackwardWeights:
      break;
  }
  const dnnl::convolution_backward_weights::primitive_desc backward(
      device.engine, direct, any(x_dims), any(w_dims), any(y_dims), window.strides, gaps,
      window.begin, window.end, forward, attributes);
  return {DnnlPrimitive::Of<dnnl::convolution_backward_weights>(backward), backward.src_desc(),
          backward.diff_weights_desc(), backward.diff_dst_desc(), backward.impl_info_str()};
}

Dims WithChannels(int64_t batch, int64_t channels, const Dims& spatial) {
  Dims dims = {batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

Dims WeightDims(const ConvShape& shape) {
  const int64_t groups = shape.groups;
  Dims dims = {shape.out_channels / groups, shape.in_channels / groups};
  if (groups > 1) dims.insert(dims.begin(), groups);
  dims.insert(dims.end(), shape.window.kernel.begin(), shape.window.kernel.end());
  return dims;
}

// Returns the number of samples computed at once: a divisor of the batch.
int64_t ChunkOf(const ConvShape& shape, int64_t x_bytes, int64_t y_bytes, int64_t w_bytes) {
  const int64_t min_bytes = std::max(kChunkBytes, 2 * w_bytes);
  for (int64_t chunk = 1; chunk < shape.batch; ++chunk) {
    if (shape.batch % chunk == 0 && chunk * (x_bytes + y_bytes) >= min_bytes) return chunk;
  }
  return shape.batch;
}

// One of x, w and y, in the caller's layout and in the primitive's layout.
struct Side {
  int id = 0;  // A constant DNNL_ARG_...
  Desc plain, own;
  LayoutChange change;  // For the result, from own to plain.
  int64_t offset = 0;   // The copy in the workspace, if needed.
  int64_t step = 0;     // Elements from one chunk to the next; 0 for weights.
};

void AddTo(float* sum, const float* term, int64_t count) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum[i] += term[i];
  });
}

class BlockedConv final : public ConvKernel {
 public:
  BlockedConv(const ConvShape& shape, ConvJob job) : job_(job) {
    const Dims w_dims = WeightDims(shape);
    const int64_t x_size = shape.in_channels * Product(shape.window.in);
    const int64_t y_size = shape.out_channels * Product(shape.window.out);
    const int64_t chunk = ChunkOf(shape, 4 * x_size, 4 * y_size, 4 * Product(w_dims));
    chunks_ = shape.batch / chunk;
    const Dims x_dims = WithChannels(chunk, shape.in_channels, shape.window.in);
    const Dims y_dims = WithChannels(chunk, shape.out_channels, shape.window.out);
    BlockedChoice choice = ChooseBlocked(device_, job, shape.window, x_dims, w_dims, y_dims);
    primitive_ = choice.primitive;
    is_fallback_ = choice.kernel.find("gemm") != std::string::npos ||
                   choice.kernel.find("ref") != std::string::npos;
    const bool reads_x = job != ConvJob::kBackwardData;
    const bool reads_y = job != ConvJob::kForward;
    const Side x = {reads_x ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC,
                    PlainDesc(x_dims),
                    choice.x,
                    {},
                    0,
                    chunk * x_size};
    const Side w = {job == ConvJob::kBackwardWeights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
                    PlainDesc(w_dims), choice.w};
    const Side y = {reads_y ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST,
                    PlainDesc(y_dims),
                    choice.y,
                    {},
                    0,
                    chunk * y_size};
    if (job == ConvJob::kForward) sides_ = {x, w, y};
    if (job == ConvJob::kBackwardData) sides_ = {w, y, x};
    if (job == ConvJob::kBackwardWeights) sides_ = {x, y, w};
    PlanWorkspace();
  }

  int64_t workspace() const override { return plan_.total(); }
  // True if oneDNN has only its general kernel for this convolution, not an optimised one.
  bool is_fallback() const { return is_fallback_; }

  void Run(const float* first, const float* second, float* result, void* workspace) const override {
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const float* a = ToOwnLayout(sides_[0], first, chunk, workspace);
      const float* b = ToOwnLayout(sides_[1], second, chunk, workspace);
      const Side& out = sides_[2];
      float* plain = result + chunk * out.step;
      float* own = out.change.is_needed() ? FloatsAt(workspace, out.offset) : plain;
      const bool adds = job_ == ConvJob::kBackwardWeights && chunk > 0;
      float* target = adds ? FloatsAt(workspace, term_) : own;
      primitive_.Run(device_,
                     {{sides_[0].id, &sides_[0].own, a},
                      {sides_[1].id, &sides_[1].own, b},
                      {out.id, &out.own, target}},
                     FloatsAt(workspace, scratch_));
      if (adds) AddTo(own, target, static_cast<int64_t>(out.own.get_size() / sizeof(float)));
      if (out.step != 0 || chunk + 1 == chunks_) {
        out.change.Run(device_, own, plain, FloatsAt(workspace, scratch_));
      }
    }
  }

 private:
  void PlanWorkspace() {
    int64_t scratch = primitive_.workspace();
    for (Side& side : sides_) {
      const bool is_result = &side == &sides_[2];
      side.change = is_result ? LayoutChange(device_, side.own, side.plain)
                              : LayoutChange(device_, side.plain, side.own);
      scratch = std::max(scratch, side.change.workspace());
      if (side.change.is_needed()) {
        side.offset = plan_.Add(static_cast<int64_t>(side.own.get_size()));
      }
    }
    if (job_ == ConvJob::kBackwardWeights && chunks_ > 1) {
      term_ = plan_.Add(static_cast<int64_t>(sides_[2].own.get_size()));
    }
    scratch_ = plan_.Add(scratch);
  }

  // Converts a chunk of an operand to the primitive's layout. Weights are converted only once.
  const float* ToOwnLayout(const Side& side, const float* plain, int64_t chunk,
                           void* workspace) const {
    const float* from = plain + chunk * side.step;
    if (!side.change.is_needed()) return from;
    float* own = FloatsAt(workspace, side.offset);
    if (side.step != 0 || chunk == 0) {
      side.change.Run(device_, from, own, FloatsAt(workspace, scratch_));
    }
    return own;
  }

  DnnlDevice device_;
  ConvJob job_;
  int64_t chunks_ = 1;
  bool is_fallback_ = false;
  DnnlPrimitive primitive_;
  std::array<Side, 3> sides_;  // The two operands and the result, in the order of Run.
  WorkspacePlan plan_;
  int64_t term_ = 0;     // Offset of one chunk's weight gradient.
  int64_t scratch_ = 0;  // Offset of oneDNN's own scratch memory.
};

}  // namespace

std::unique_ptr<ConvKernel> MakeConvKernel(const ConvShape& shape, ConvJob job) {
  if (std::unique_ptr<ConvKernel> product = MakePointwiseConv(shape, job)) return product;
  auto blocked = std::make_unique<BlockedConv>(shape, job);
  const bool is_grouped = shape.groups > 1;
  if (job == ConvJob::kBackwardWeights && is_grouped && blocked->is_fallback()) {
    return MakeGroupedWeights(shape);
  }
  return blocked;
}

// The weight gradient of a grouped convolution. With few channels per group a matrix product isn't
// worthwhile: each weight is the dot product of an image of y and a shifted image of x.

namespace {

constexpr int64_t kLanes = 8;

// Computes sums[i % kLanes] += y[i] * x[i * stride]. The fixed lanes make the result independent of
// the alignment that vector instructions need.
CKPLAN_VECTOR_CLONES
void AddProducts(const float* y, const float* x, int64_t stride, int64_t count, float* sums) {
  float lanes[kLanes];
  std::copy_n(sums, kLanes, lanes);
  int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += y[i + lane] * x[i + lane];
    }
  }
  for (; i < count; ++i) lanes[i % kLanes] += y[i] * x[i * stride];
  std::copy_n(lanes, kLanes, sums);
}

struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0;

  int64_t at(int64_t o, int64_t k) const { return o * stride - begin + k * dilation; }
  // The outputs [first, last) whose input for kernel position k lies inside the image.
  int64_t first(int64_t k) const {
    const int64_t reach = begin - k * dilation;
    return reach <= 0 ? 0 : std::min(out, (reach + stride - 1) / stride);
  }
  int64_t last(int64_t k) const {
    const int64_t room = in + begin - k * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
};

// Images as wide as their result whose rows are too short for vector instructions are multiplied as
// one row. Elements of y whose counterpart in x is in another row are zeroed.
constexpr int64_t kFlatImage = 1024;
constexpr int64_t kFlatWidth = 24;

class GroupedWeights final : public ConvKernel {
 public:
  explicit GroupedWeights(const ConvShape& shape)
      : batch_(shape.batch),
        in_channels_(shape.in_channels),
        out_channels_(shape.out_channels),
        group_in_(shape.in_channels / shape.groups),
        group_out_(shape.out_channels / shape.groups) {
    const Window& window = shape.window;
    const size_t skipped = axes_.size() - window.rank();
    for (size_t i = 0; i < window.rank(); ++i) {
      axes_[i + skipped] = {window.in[i],      window.out[i],       window.kernel[i],
                            window.strides[i], window.dilations[i], window.begin[i]};
    }
  }

  int64_t workspace() const override { return 0; }

  void Run(const float* x, const float* y, float* result, void*) const override {
    const int64_t taps = axes_[0].kernel * axes_[1].kernel * axes_[2].kernel;
    ParallelFor(out_channels_ * group_in_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair)
        ComputeWeights(x, y, pair, result + pair * taps);
    });
  }

 private:
  // Computes the weights between one channel of y and one channel of x.
  void ComputeWeights(const float* x, const float* y, int64_t pair, float* weights) const {
    const auto& [d, h, w] = axes_;
    const int64_t in = d.in * h.in * w.in;
    const int64_t out = d.out * h.out * w.out;
    const int64_t y_channel = pair / group_in_;
    const int64_t x_channel = y_channel / group_out_ * group_in_ + pair % group_in_;
    const bool is_flat = d.in == 1 && d.kernel == 1 && w.stride == 1 && h.stride == 1 &&
                         w.in == w.out && w.out <= kFlatWidth && out <= kFlatImage;
    const int64_t rows = d.kernel * h.kernel;
    for (int64_t k = 0; k < w.kernel; ++k) {
      for (int64_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (int64_t n = 0; n < batch_; ++n) {
          const float* from_y = y + (n * out_channels_ + y_channel) * out;
          const float* from_x = x + (n * in_channels_ + x_channel) * in;
          sum += is_flat ? MultiplyFlat(from_y, from_x, row, k)
                         : Multiply(from_y, from_x, row / h.kernel, row % h.kernel, k);
        }
        weights[row * w.kernel + k] = static_cast<float>(sum);
      }
    }
  }

  static double SumLanes(const float* lanes) {
    double sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += static_cast<double>(lanes[lane]);
    return sum;
  }

  // Returns the dot product of y's image and x's image shifted by kernel position (i, j, k), where
  // they overlap.
  double Multiply(const float* y, const float* x, int64_t i, int64_t j, int64_t k) const {
    const auto& [d, h, w] = axes_;
    const int64_t first = w.first(k);
    const int64_t count = w.last(k) - first;
    if (count <= 0) return 0;
    float lanes[kLanes] = {};
    for (int64_t a = d.first(i); a < d.last(i); ++a) {
      for (int64_t b = h.first(j); b < h.last(j); ++b) {
        const float* row_y = y + (a * h.out + b) * w.out + first;
        const float* row_x = x + (d.at(a, i) * h.in + h.at(b, j)) * w.in + w.at(first, k);
        AddProducts(row_y, row_x, w.stride, count, lanes);
      }
    }
    return SumLanes(lanes);
  }

  double MultiplyFlat(const float* y, const float* x, int64_t j, int64_t k) const {
    const auto& [d, h, w] = axes_;
    const int64_t first_row = h.first(j);
    const int64_t last_row = h.last(j);
    const int64_t first = w.first(k);
    const int64_t last = w.last(k);
    if (first_row >= last_row || first >= last) return 0;
    float masked[kFlatImage];
    for (int64_t b = first_row; b < last_row; ++b) {
      float* row = masked + b * w.out;
      std::copy_n(y + b * w.out, w.out, row);
      std::fill(row, row + first, 0.0F);
      std::fill(row + last, row + w.out, 0.0F);
    }
    float lanes[kLanes] = {};
    const int64_t begin = first_row * w.out + first;
    const int64_t end = (last_row - 1) * w.out + last;
    AddProducts(masked + begin, x + h.at(first_row, j) * w.in + w.at(first, k), 1, end - begin,
                lanes);
    return SumLanes(lanes);
  }

  int64_t batch_, in_channels_, out_channels_, group_in_, group_out_;
  std::array<Axis, 3> axes_;
};

}  // namespace

std::unique_ptr<ConvKernel> MakeGroupedWeights(const ConvShape& shape) {
  return std::make_unique<GroupedWeights>(shape);
}

}  // namespace ckplan::cpu

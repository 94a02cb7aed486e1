// Col2Im: a row of the image gathers the rows of blocks that overlap it; the gradient's rows are
// cut out of the image's gradient.
#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cpu {

namespace {

class Col2ImOp final : public PreparedOp {
 public:
  explicit Col2ImOp(const Col2ImShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    float* y = Floats(call.outputs[0]);
    const int64_t width = shape_.axes[2].in;
    const int64_t rows = shape_.image() / width;
    const int64_t grain = std::max<int64_t>(1, kGrain / width / shape_.block());
    ParallelFor(shape_.planes * rows, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* plane = x + row / rows * shape_.block() * shape_.blocks();
        SumRow(plane, row % rows, y + row * width);
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    float* dx = Floats(gradient);
    const int64_t width = shape_.axes[2].out;
    const int64_t rows = shape_.block() * (shape_.blocks() / width);
    const int64_t grain = std::max<int64_t>(1, kGrain / width);
    ParallelFor(shape_.planes * rows, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        CutRow(dy + row / rows * shape_.image(), row % rows, dx + row * width);
      }
    });
  }

 private:
  // Computes row `index` of an image by adding all blocks that overlap it, in the order of the
  // positions in a block.
  void SumRow(const float* plane, int64_t index, float* row) const {
    const auto& [d, h, w] = shape_.axes;
    std::fill_n(row, w.in, 0.0F);
    for (int64_t i = 0; i < d.kernel; ++i) {
      const int64_t z = d.output_of(index / h.in, i);
      if (z < 0) continue;
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t y = h.output_of(index % h.in, j);
        if (y < 0) continue;
        for (int64_t k = 0; k < w.kernel; ++k) {
          const int64_t position = (i * h.kernel + j) * w.kernel + k;
          AddRow(plane + ((position * d.out + z) * h.out + y) * w.out, k, row);
        }
      }
    }
  }

  // Adds one row of blocks to a row of the image. `from` points to position k along the last axis
  // of the blocks.
  void AddRow(const float* from, int64_t k, float* row) const {
    const WindowAxis& w = shape_.axes[2];
    const int64_t last = w.last_out(k);
    for (int64_t o = w.first_out(k); o < last; ++o) row[w.origin(o) + k * w.dilation] += from[o];
  }

  // Copies row `index` of an image's columns: the elements at one position of the blocks of one row
  // of blocks.
  void CutRow(const float* image, int64_t index, float* row) const {
    const auto& [d, h, w] = shape_.axes;
    const int64_t position = index / (d.out * h.out);
    const int64_t k = position % w.kernel;
    const int64_t y = h.origin(index % h.out) + position / w.kernel % h.kernel * h.dilation;
    const int64_t z =
        d.origin(index / h.out % d.out) + position / (w.kernel * h.kernel) * d.dilation;
    const bool is_inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
    const int64_t first = is_inside ? w.first_out(k) : w.out;
    const int64_t last = is_inside ? w.last_out(k) : w.out;
    std::fill(row, row + first, 0.0F);
    for (int64_t o = first; o < last; ++o) {
      row[o] = image[(z * h.in + y) * w.in + w.origin(o) + k * w.dilation];
    }
    std::fill(row + last, row + w.out, 0.0F);
  }

  Col2ImShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCol2Im(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const Col2ImShape shape, ReadCol2ImShape(spec));
  return Prepared<Col2ImOp>(shape);
}

constexpr OpRow kCol2ImOps[] = {{"Col2Im", PrepareCol2Im}};

}  // namespace

std::span<const OpRow> Col2ImOps() { return kCol2ImOps; }

}  // namespace ckplan::cpu

// Col2Im: an element of the image gathers the elements of blocks that overlap it; the gradient of
// an element of a block is the gradient of the image's element below it.
#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/window_axis.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

namespace {

// Maps between elements of the image and elements of its blocks.
class Blocks {
 public:
  explicit Blocks(const Col2ImShape& shape)
      : d_(shape.axes[0]),
        h_(shape.axes[1]),
        w_(shape.axes[2]),
        block_d_(d_.kernel),
        block_h_(h_.kernel),
        block_w_(w_.kernel) {}

  // Returns the sum of all blocks at an element of the image, in the order of the positions in a
  // block.
  CKPLAN_DEVICE float SumAt(const FloatsIn& columns, int64_t element) const {
    int64_t x = element;
    int64_t y = w_.in.Split(x);
    int64_t z = h_.in.Split(y);
    const int64_t plane = d_.in.Split(z);
    float sum = 0;
    for (int64_t i = 0; i < d_.kernel; ++i) {
      const int64_t a = d_.OutputOf(z, i);
      if (a < 0) continue;
      for (int64_t j = 0; j < h_.kernel; ++j) {
        const int64_t b = h_.OutputOf(y, j);
        if (b < 0) continue;
        for (int64_t k = 0; k < w_.kernel; ++k) {
          const int64_t c = w_.OutputOf(x, k);
          if (c < 0) continue;
          const int64_t position = ((plane * d_.kernel + i) * h_.kernel + j) * w_.kernel + k;
          sum += columns[((position * d_.out.divisor() + a) * h_.out.divisor() + b) *
                             w_.out.divisor() +
                         c];
        }
      }
    }
    return sum;
  }

  // Returns the element of the image that this element of a block covers, or -1 in the padding.
  CKPLAN_DEVICE int64_t ElementOf(int64_t column) const {
    int64_t c = column;
    int64_t b = w_.out.Split(c);
    int64_t a = h_.out.Split(b);
    int64_t k = d_.out.Split(a);
    int64_t j = block_w_.Split(k);
    int64_t i = block_h_.Split(j);
    const int64_t plane = block_d_.Split(i);
    const int64_t z = d_.InputOf(a, i);
    const int64_t y = h_.InputOf(b, j);
    const int64_t x = w_.InputOf(c, k);
    if (z < 0 || y < 0 || x < 0) return -1;
    return ((plane * d_.in.divisor() + z) * h_.in.divisor() + y) * w_.in.divisor() + x;
  }

 private:
  DeviceWindowAxis d_, h_, w_;
  Divider block_d_, block_h_, block_w_;
};

class Col2ImOp final : public PreparedOp {
 public:
  Col2ImOp(const OpSpec& spec, Device& device, const Col2ImShape& shape)
      : device_(device), shape_(shape), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    const FloatsIn x(call.inputs[0], x_type_);
    const FloatsOut y(call.outputs[0], y_type_);
    const Blocks blocks(shape_);
    ForEach(device_, shape_.planes * shape_.image(),
            [=] CKPLAN_KERNEL(int64_t i) { y.Set(i, blocks.SumAt(x, i)); });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const FloatsIn dy(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    const Blocks blocks(shape_);
    ForEach(device_, shape_.planes * shape_.block() * shape_.blocks(),
            [=] CKPLAN_KERNEL(int64_t i) {
              const int64_t element = blocks.ElementOf(i);
              dx.Set(i, element < 0 ? 0.0F : dy[element]);
            });
  }

 private:
  Device& device_;
  Col2ImShape shape_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCol2Im(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const Col2ImShape shape, ReadCol2ImShape(spec));
  return Prepared<Col2ImOp>(spec, device, shape);
}

constexpr OpRow kCol2ImOps[] = {{"Col2Im", PrepareCol2Im}};

}  // namespace

std::span<const OpRow> Col2ImOps() { return kCol2ImOps; }

}  // namespace ckplan::cuda

// Conv and ConvTranspose; each one's forward pass is the gradient of the other's input. cuDNN pads
// both sides equally. For uneven pads, the workspace holds a padded copy of the larger tensor, or
// of its gradient. If one tensor is channels-last, cuDNN gets all three in this order, and the
// workspace holds copies of the others.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lib/executor/cuda/channels.h"
#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/shape_rules.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cuda {

namespace {

// Data shared by a convolution's three passes. The image is x of Conv and y of ConvTranspose; the
// map is y of Conv and x of ConvTranspose.
struct ConvGeometry {
  ConvolutionShape shape;             // As passed to cuDNN: equal pads on both sides.
  bool pads = false;                  // `shape` describes a padded copy of the image.
  std::vector<int64_t> image, begin;  // Per spatial axis: image size, padding in front.
  Dims image_dims, weights_dims, map_dims;
  StoredAs image_as, weights_as, map_as;

  StoredAs computed_as() const { return {shape.type, shape.is_channels_last}; }
  int64_t planes() const { return shape.batch * shape.groups * shape.in_channels; }
  int64_t padded_elements() const { return planes() * Product(shape.in); }
};

// The spatial axes of an image and its padded copy, always three.
struct PaddedAxes {
  Divider image[3], padded[3];
  int64_t begin[3] = {0, 0, 0};

  static int64_t Size(const Divider* axes) {
    return axes[0].divisor() * axes[1].divisor() * axes[2].divisor();
  }
  // Maps an index in `from` to the same element's index in `to`, where the position along each axis
  // is larger by sign * begin. Returns -1 if it is out of range.
  CKPLAN_DEVICE int64_t Find(int64_t index, const Divider* from, const Divider* to,
                             int64_t sign) const {
    int64_t place = 0;
    int64_t stride = 1;
    for (int axis = 2; axis >= 0; --axis) {
      const int64_t outer = from[axis].Quotient(index);
      const int64_t at = index - outer * from[axis].divisor() + sign * begin[axis];
      if (at < 0 || at >= to[axis].divisor()) return -1;
      place += at * stride;
      stride *= to[axis].divisor();
      index = outer;
    }
    return index * stride + place;
  }
};

class Padding {
 public:
  explicit Padding(const ConvGeometry& geometry) : planes_(geometry.planes()) {
    const size_t lacking = 3 - geometry.image.size();
    for (size_t i = 0; i < geometry.image.size(); ++i) {
      axes_.image[lacking + i] = Divider(geometry.image[i]);
      axes_.padded[lacking + i] = Divider(geometry.shape.in[i]);
      axes_.begin[lacking + i] = geometry.begin[i];
    }
  }

  void Pad(Device& device, FloatsIn image, FloatsOut padded) const {
    const PaddedAxes axes = axes_;
    ForEach(device, planes_ * axes.Size(axes.padded), [=] CKPLAN_KERNEL(int64_t i) {
      const int64_t at = axes.Find(i, axes.padded, axes.image, -1);
      padded.Set(i, at < 0 ? 0.0F : image[at]);
    });
  }
  // Copies the image out of its padded copy. Pixels that no window reaches become zero.
  void Crop(Device& device, FloatsIn padded, FloatsOut image) const {
    const PaddedAxes axes = axes_;
    ForEach(device, planes_ * axes.Size(axes.image), [=] CKPLAN_KERNEL(int64_t i) {
      const int64_t at = axes.Find(i, axes.image, axes.padded, 1);
      image.Set(i, at < 0 ? 0.0F : padded[at]);
    });
  }

 private:
  int64_t planes_;
  PaddedAxes axes_;
};

// One pass on tensors in the model's types and padding. Tensors that cuDNN doesn't accept are
// converted or padded in the workspace.
class ConvRunner {
 public:
  static Result<std::unique_ptr<ConvRunner>> Make(const OpSpec& spec, Device& device,
                                                  const ConvGeometry& geometry, ConvPass pass) {
    auto convolution = device.libraries().PrepareConvolution(geometry.shape, pass);
    if (!convolution.ok() && geometry.shape.is_channels_last) {
      ConvGeometry other = geometry;
      other.shape.is_channels_last = false;
      return Make(spec, device, other, pass);
    }
    if (!convolution.ok()) return Unsupported(spec, convolution.error().message);
    return Result<std::unique_ptr<ConvRunner>>(
        std::make_unique<ConvRunner>(device, geometry, pass, std::move(convolution).value()));
  }

  ConvRunner(Device& device, const ConvGeometry& geometry, ConvPass pass,
             std::unique_ptr<Convolution> convolution)
      : device_(device),
        pass_(pass),
        type_(geometry.shape.type),
        image_type_(geometry.image_as.type),
        pads_(geometry.pads),
        padding_(geometry),
        convolution_(std::move(convolution)),
        weights_(geometry.weights_dims, geometry.weights_as, geometry.computed_as(), plan_),
        map_(geometry.map_dims, geometry.map_as, geometry.computed_as(), plan_) {
    if (pads_) {
      padded_ = plan_.Add(geometry.padded_elements() * SizeOf(type_));
    } else {
      image_ = Conversion(geometry.image_dims, geometry.image_as, geometry.computed_as(), plan_);
    }
    scratch_ = plan_.Add(convolution_->workspace());
  }

  int64_t workspace() const { return plan_.total(); }
  const EngineChoice& choice() const { return convolution_->choice(); }

  // Reads two of the tensors and writes the third, depending on the pass.
  void Run(const void* image, const void* weights, const void* map, void* workspace) const {
    void* x = pass_ == ConvPass::kBackwardData ? ImageTarget(Mutable(image), workspace)
                                               : Mutable(ImageIn(image, workspace));
    void* w = pass_ == ConvPass::kBackwardWeights
                  ? weights_.Target(Mutable(weights), workspace)
                  : Mutable(weights_.Apply(device_, weights, workspace));
    void* y = pass_ == ConvPass::kForward ? map_.Target(Mutable(map), workspace)
                                          : Mutable(map_.Apply(device_, map, workspace));
    convolution_->Run(x, w, y, BufferAt(workspace, scratch_));
    if (pass_ == ConvPass::kForward) map_.Return(device_, Mutable(map), workspace);
    if (pass_ == ConvPass::kBackwardWeights) weights_.Return(device_, Mutable(weights), workspace);
    if (pass_ == ConvPass::kBackwardData) ReturnImage(Mutable(image), workspace);
  }

 private:
  // Removes const: the libraries and Run use one pointer type for all three tensors.
  static void* Mutable(const void* data) { return const_cast<void*>(data); }  // NOLINT

  const void* ImageIn(const void* image, void* workspace) const {
    if (!pads_) return image_.Apply(device_, image, workspace);
    void* padded = BufferAt(workspace, padded_);
    padding_.Pad(device_, FloatsIn(image, image_type_), FloatsOut(padded, type_));
    return padded;
  }
  void* ImageTarget(void* image, void* workspace) const {
    return pads_ ? BufferAt(workspace, padded_) : image_.Target(image, workspace);
  }
  void ReturnImage(void* image, void* workspace) const {
    if (!pads_) return image_.Return(device_, image, workspace);
    padding_.Crop(device_, FloatsIn(BufferAt(workspace, padded_), type_),
                  FloatsOut(image, image_type_));
  }

  Device& device_;
  ConvPass pass_;
  ElementType type_, image_type_;
  bool pads_;
  Padding padding_;
  std::unique_ptr<Convolution> convolution_;
  WorkspacePlan plan_;
  Conversion weights_, map_, image_;
  int64_t padded_ = 0, scratch_ = 0;
};

Channels ChannelsOfOutput(const OpSpec& spec, const ConvShape& shape) {
  const int64_t channels = shape.is_transposed ? shape.in_channels : shape.out_channels;
  const int64_t positions = Product(shape.is_transposed ? shape.window.in : shape.window.out);
  if (spec.output(0).is_channels_last) return {shape.batch * positions, channels, 1};
  return {shape.batch, channels, positions};
}

struct AddBias {
  FloatsIn terms;
  struct Line {
    float term;
    CKPLAN_DEVICE float operator()(float x, float) const { return x + term; }
  };
  CKPLAN_DEVICE Line LineOf(int64_t channel) const { return {terms[channel]}; }
};

// The third input: one bias per output channel.
class ChannelBias {
 public:
  ChannelBias(const OpSpec& spec, const ConvShape& shape)
      : type_(spec.input(2).type),
        output_type_(spec.output(0).type),
        shape_(ChannelsOfOutput(spec, shape)),
        sums_(shape_) {}

  int64_t workspace() const { return sums_.workspace<float>(); }

  void Add(Device& device, const void* bias, void* output) const {
    MapChannels(device, shape_, FloatsOut(output, output_type_), AddBias{FloatsIn(bias, type_)},
                FloatsIn(output, output_type_));
  }

  // Computes the gradient: the sum over samples and positions, per channel.
  void Sum(Device& device, const void* output_gradient, void* gradient, void* workspace) const {
    const FloatsIn from(output_gradient, output_type_);
    const FloatsOut to(gradient, type_);
    sums_.Run(
        device, 0.0F, ElementItself(), SumOf(),
        [=] CKPLAN_KERNEL(int64_t channel, float sum) { to.Set(channel, sum); }, workspace, from);
  }

 private:
  ElementType type_, output_type_;
  Channels shape_;
  ChannelReduction sums_;
};

struct Runners {
  std::unique_ptr<ConvRunner> forward, data, weights;
};

class ConvOp final : public PreparedOp {
 public:
  ConvOp(const OpSpec& spec, Device& device, const ConvShape& shape, Runners runners)
      : device_(device), is_transposed_(shape.is_transposed), runners_(std::move(runners)) {
    if (shape.has_bias) bias_ = std::make_unique<ChannelBias>(spec, shape);
  }

  OpWorkspace workspace() const override {
    int64_t backward = bias_ ? bias_->workspace() : 0;
    for (const auto* runner : {runners_.data.get(), runners_.weights.get()}) {
      if (runner != nullptr) backward = std::max(backward, runner->workspace());
    }
    return {runners_.forward->workspace(), backward};
  }
  std::vector<LibraryCall> LibraryCalls() const override {
    std::vector<LibraryCall> calls = {{"forward", runners_.forward->choice()}};
    if (runners_.data) calls.push_back({"input gradient", runners_.data->choice()});
    if (runners_.weights) calls.push_back({"weight gradient", runners_.weights->choice()});
    return calls;
  }

  void Forward(const ForwardCall& call) override {
    void* y = call.outputs[0];
    if (y == nullptr) return;
    Run(*runners_.forward, call.inputs[0], call.inputs[1], y, call.workspace);
    if (bias_) bias_->Add(device_, call.inputs[2], y);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const void* dy = call.output_gradients[0];
    if (position == 0) {
      Run(*runners_.data, gradient, call.inputs[1], dy, call.workspace);
    } else if (position == 1) {
      Run(*runners_.weights, call.inputs[0], gradient, dy, call.workspace);
    } else {
      bias_->Sum(device_, dy, gradient, call.workspace);
    }
  }

 private:
  void Run(const ConvRunner& runner, const void* x, const void* w, const void* y,
           void* workspace) const {
    runner.Run(is_transposed_ ? y : x, w, is_transposed_ ? x : y, workspace);
  }

  Device& device_;
  bool is_transposed_;
  Runners runners_;
  std::unique_ptr<ChannelBias> bias_;
};

ConvGeometry GeometryOf(const OpSpec& spec, const ConvShape& conv) {
  const Operand& image = conv.is_transposed ? spec.output(0) : spec.input(0);
  const Operand& map = conv.is_transposed ? spec.input(0) : spec.output(0);
  const Operand& weights = spec.input(1);
  Window window = conv.window;
  if (window.rank() == 1) {  // cuDNN gets an image with one row.
    for (auto* axes :
         {&window.in, &window.out, &window.kernel, &window.strides, &window.dilations}) {
      axes->insert(axes->begin(), 1);
    }
    window.begin.insert(window.begin.begin(), 0);
    window.end.insert(window.end.begin(), 0);
  }
  ConvGeometry geometry;
  ConvolutionShape& shape = geometry.shape;
  shape.type = CommonType({image.type, map.type, weights.type});
  shape.batch = conv.batch;
  shape.groups = conv.groups;
  shape.in_channels = conv.in_channels / conv.groups;
  shape.out_channels = conv.out_channels / conv.groups;
  shape.in = window.in;
  shape.out = window.out;
  shape.kernel = window.kernel;
  shape.strides = window.strides;
  shape.dilations = window.dilations;
  shape.pads = window.begin;
  geometry.image = window.in;
  geometry.begin = window.begin;
  geometry.image_dims = image.dims;
  geometry.weights_dims = weights.dims;
  geometry.map_dims = map.dims;
  geometry.image_as = {image.type, image.is_channels_last};
  geometry.weights_as = {weights.type};
  geometry.map_as = {map.type, map.is_channels_last};
  geometry.shape.is_channels_last = image.is_channels_last || map.is_channels_last;
  geometry.pads = !FitsEvenPads(window);
  if (!geometry.pads) return geometry;
  CKPLAN_CHECK(!shape.is_channels_last, "convolutions with uneven pads use the model's order");
  for (size_t i = 0; i < window.rank(); ++i) {
    shape.pads[i] = 0;
    shape.in[i] = (window.out[i] - 1) * window.strides[i] + window.extent(i);
  }
  return geometry;
}

Result<Runners> MakeRunners(const OpSpec& spec, Device& device, const ConvGeometry& geometry,
                            bool is_transposed) {
  const ConvPass forward = is_transposed ? ConvPass::kBackwardData : ConvPass::kForward;
  const ConvPass data = is_transposed ? ConvPass::kForward : ConvPass::kBackwardData;
  Runners runners;
  CKPLAN_ASSIGN_OR_RETURN(runners.forward, ConvRunner::Make(spec, device, geometry, forward));
  if (spec.input(0).has_gradient) {
    CKPLAN_ASSIGN_OR_RETURN(runners.data, ConvRunner::Make(spec, device, geometry, data));
  }
  if (spec.input(1).has_gradient) {
    CKPLAN_ASSIGN_OR_RETURN(runners.weights,
                            ConvRunner::Make(spec, device, geometry, ConvPass::kBackwardWeights));
  }
  return Result<Runners>(std::move(runners));
}

Result<std::unique_ptr<PreparedOp>> PrepareConv(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ConvShape shape, ReadConvShape(spec));
  const ConvGeometry geometry = GeometryOf(spec, shape);
  CKPLAN_ASSIGN_OR_RETURN(Runners runners,
                          MakeRunners(spec, device, geometry, shape.is_transposed));
  return Prepared<ConvOp>(spec, device, shape, std::move(runners));
}

constexpr OpRow kConvOps[] = {{"Conv", PrepareConv}, {"ConvTranspose", PrepareConv}};

}  // namespace

std::span<const OpRow> ConvOps() { return kConvOps; }

}  // namespace ckplan::cuda

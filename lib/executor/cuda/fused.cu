// Chains of elementwise operators, optionally starting with a BatchNormalization.
//
// The kernel applies the links to each group of kWide elements. It learns at run time which
// operators they are, so one kernel serves all chains, and nvcc cannot fuse a product in one link
// with a sum in the next: each link rounds like its operator.
#include "lib/executor/cuda/channels.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/lines.h"
#include "lib/executor/cuda/ops/moments.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/shape_rules.h"
#include "lib/executor/scalar/binary.h"
#include "lib/executor/scalar/random.h"
#include "lib/executor/scalar/unary.h"
#include "lib/problem/ops/generate.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/norms.h"

namespace ckplan::cuda {

namespace {

// A link as the kernel reads it.
struct FusedLink {
  LinkKind kind = LinkKind::kAdd;
  LinkOperand operand = LinkOperand::kNone;
  bool is_second = false;  // The carried value is the second operand.
  bool rounds = false;     // The result is bfloat16.
  FloatsIn in;
  FloatsOut out;             // Null if the result isn't needed later.
  uint8_t* flags = nullptr;  // The result of IsNaN.
  FloatsIn chosen;           // Where's number.
  uint64_t seed = 0;
  scalar::Drop drop{0.0};
};

CKPLAN_DEVICE inline float CombineLink(LinkKind kind, float a, float b) {
  switch (kind) {
    case LinkKind::kAdd:
      return scalar::Add::Value(a, b);
    case LinkKind::kSub:
      return scalar::Sub::Value(a, b);
    case LinkKind::kMul:
      return scalar::Mul::Value(a, b);
    default:
      return scalar::Div::Value(a, b);
  }
}

// kWidth neighbouring elements of a chain, starting at `first`: one element, or kWide elements with
// `first` a multiple of kWide.
template <int kWidth>
struct ChainGroup {
  float at[kWidth];

  CKPLAN_DEVICE static ChainGroup Read(const FloatsIn& in, int64_t first) {
    ChainGroup group;
    if constexpr (kWidth == kWide) {
      const Float8 values = in.LoadWide(first / kWide);
      CKPLAN_UNROLL
      for (int k = 0; k < kWidth; ++k) group.at[k] = values.at[k];
    } else {
      group.at[0] = in[first];
    }
    return group;
  }
  CKPLAN_DEVICE void Write(const FloatsOut& out, int64_t first) const {
    if constexpr (kWidth == kWide) {
      Float8 values;
      CKPLAN_UNROLL
      for (int k = 0; k < kWidth; ++k) values.at[k] = at[k];
      out.StoreWide(first / kWide, values);
    } else {
      out.Set(first, at[0]);
    }
  }
};

struct ChainMap {
  int64_t count;
  Divider inner;  // The length of the last axis.
  FloatsIn x;
  // The channels of a BatchNormalization, and their blocks if its threads work by blocks.
  Divider positions, channels;
  NormaliseChannel normalise;
  bool has_blocks;
  ChannelBlocks blocks;
  int links;
  FusedLink link[kMaxLinks];

  CKPLAN_DEVICE void operator()(int64_t group) const {
    if (has_blocks) return RunBlock(group);
    const int64_t first = group * kWide;
    if (first + kWide <= count) return Run<kWide>(first, nullptr);
    for (int64_t i = first; i < count; ++i) Run<1>(i, nullptr);
  }

  CKPLAN_DEVICE void RunBlock(int64_t index) const {
    const auto block = blocks.Find(index);
    NormaliseChannel::Line lines[kWide];
    CKPLAN_UNROLL
    for (int k = 0; k < kWide; ++k) lines[k] = normalise.LineOf(block.channel() + k);
    for (int64_t row = block.first; row < block.end; ++row) {
      Run<kWide>(blocks.At(block, row) * kWide, lines);
    }
  }

  // `lines` belong to the channels of these elements; may be null.
  template <int kWidth>
  CKPLAN_DEVICE void Run(int64_t first, const NormaliseChannel::Line* lines) const {
    auto values = ChainGroup<kWidth>::Read(x, first);
    for (int i = 0; i < links; ++i) {
      const FusedLink& own = link[i];
      if (own.kind == LinkKind::kBatchNorm && lines != nullptr) {
        CKPLAN_UNROLL
        for (int k = 0; k < kWidth; ++k) values.at[k] = lines[k](values.at[k], 0);
      } else if (own.kind == LinkKind::kBatchNorm) {
        Normalise(values, first);
      } else if (own.operand != LinkOperand::kNone) {
        Combine(own, values, first);
      } else {
        Map(own, values, first);
      }
      if (own.rounds) {
        CKPLAN_UNROLL
        for (float& value : values.at) value = FromBFloat16(ToBFloat16(value));
      }
      if (!own.out.is_null()) values.Write(own.out, first);
    }
  }

  template <int kWidth>
  CKPLAN_DEVICE void Normalise(ChainGroup<kWidth>& values, int64_t first) const {
    int64_t place = first;
    int64_t channel = positions.Split(place);
    channels.Split(channel);
    auto line = normalise.LineOf(channel);
    CKPLAN_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      if (place == positions.divisor()) {
        place = 0;
        channel = channel + 1 == channels.divisor() ? 0 : channel + 1;
        line = normalise.LineOf(channel);
      }
      values.at[k] = line(values.at[k], 0);
      ++place;
    }
  }

  template <int kWidth>
  CKPLAN_DEVICE ChainGroup<kWidth> Operand(const FusedLink& own, int64_t first) const {
    if (own.operand == LinkOperand::kWhole) return ChainGroup<kWidth>::Read(own.in, first);
    ChainGroup<kWidth> group;
    if (own.operand == LinkOperand::kScalar) {
      const float same = own.in[0];
      CKPLAN_UNROLL
      for (float& value : group.at) value = same;
      return group;
    }
    int64_t place = first;
    inner.Split(place);
    if (kWidth == kWide && inner.divisor() % kWide == 0) {
      return ChainGroup<kWidth>::Read(own.in, place);
    }
    CKPLAN_UNROLL
    for (float& value : group.at) {
      value = own.in[place];
      place = place + 1 == inner.divisor() ? 0 : place + 1;
    }
    return group;
  }

  template <int kWidth>
  CKPLAN_DEVICE void Combine(const FusedLink& own, ChainGroup<kWidth>& values,
                             int64_t first) const {
    const auto other = Operand<kWidth>(own, first);
    if (own.kind == LinkKind::kWhere) {
      const float number = own.chosen[0];
      CKPLAN_UNROLL
      for (int k = 0; k < kWidth; ++k) values.at[k] = values.at[k] != 0 ? number : other.at[k];
      return;
    }
    CKPLAN_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      values.at[k] = own.is_second ? CombineLink(own.kind, other.at[k], values.at[k])
                                   : CombineLink(own.kind, values.at[k], other.at[k]);
    }
  }

  template <int kWidth, typename F>
  CKPLAN_DEVICE static void Each(const F& f, ChainGroup<kWidth>& values) {
    CKPLAN_UNROLL
    for (float& value : values.at) value = f.Value(value);
  }

  template <int kWidth>
  CKPLAN_DEVICE void Map(const FusedLink& own, ChainGroup<kWidth>& values, int64_t first) const {
    switch (own.kind) {
      case LinkKind::kRelu:
        return Each(scalar::Relu(), values);
      case LinkKind::kGeluErf:
        return Each(scalar::GeluErf<DeviceMath>(), values);
      case LinkKind::kGeluTanh:
        return Each(scalar::GeluTanh<DeviceMath>(), values);
      case LinkKind::kTanh:
        return Each(scalar::Tanh<DeviceMath>(), values);
      case LinkKind::kSquare:
        return Each(scalar::Square(), values);
      case LinkKind::kCube:
        return Each(scalar::Cube(), values);
      case LinkKind::kIsNan:
        return Test(own, values, first);
      default:
        return Drop(own, values, first);
    }
  }

  template <int kWidth>
  CKPLAN_DEVICE void Test(const FusedLink& own, ChainGroup<kWidth>& values, int64_t first) const {
    CKPLAN_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      const bool is_nan = scalar::IsNan::Value(values.at[k]);
      values.at[k] = is_nan ? 1.0F : 0.0F;
      if (own.flags != nullptr) own.flags[first + k] = is_nan ? 1 : 0;
    }
  }

  template <int kWidth>
  CKPLAN_DEVICE void Drop(const FusedLink& own, ChainGroup<kWidth>& values, int64_t first) const {
    const CounterRng rng(own.seed);
    CKPLAN_UNROLL
    for (int k = 0; k < kWidth; ++k) values.at[k] = own.drop(rng.Bits(first + k), values.at[k]);
  }
};

class FusedChain final : public FusedForward {
 public:
  FusedChain(std::span<const ChainedOp> ops, Device& device)
      : device_(device), ops_(ops.begin(), ops.end()), links_(LinksOf(ops)) {
    const OpSpec& first = *ops_[0].spec;
    map_.count = first.output(0).elements();
    const Dims dims = StoredDims(first.output(0));
    map_.inner = Divider(dims.empty() ? 1 : dims.back());
    map_.links = static_cast<int>(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) Prepare(*ops_[i].spec, i);
  }

  // Computes the moments of a BatchNormalization. Other operators have nothing to do without their
  // first output.
  void Begin(const ForwardCall& first) override {
    if (links_[0].kind == LinkKind::kBatchNorm) ops_[0].op->Forward(first);
  }

  void Run(std::span<const ForwardCall> calls) override {
    ChainMap map = map_;
    const OpSpec& first = *ops_[0].spec;
    const size_t input = FirstInput(first);
    map.x = FloatsIn(calls[0].inputs[input], first.input(input).type);
    if (links_[0].kind == LinkKind::kBatchNorm) {
      map.normalise = {static_cast<const Moments*>(calls[0].statistic),
                       FloatsIn(calls[0].inputs[1], first.input(1).type),
                       FloatsIn(calls[0].inputs[2], first.input(2).type)};
    }
    for (size_t i = 0; i < ops_.size(); ++i) Point(*ops_[i].spec, calls[i], i, map.link[i]);
    ForEach(device_, map.has_blocks ? map.blocks.count() : CeilDiv(map.count, kWide), map);
  }

 private:
  void Prepare(const OpSpec& spec, size_t i) {
    FusedLink& own = map_.link[i];
    own.kind = links_[i].kind;
    own.operand = links_[i].operand;
    own.rounds = spec.output(0).type == ElementType::kBFloat16;
    own.is_second = i == 0 ? FirstInput(spec) == 1 : ops_[i].carried == 1;
    if (own.kind == LinkKind::kDropout) {
      const auto ratio = ReadDropoutRatio(spec);
      CKPLAN_CHECK(ratio.ok(), "a prepared operator has a ratio");
      own.drop = scalar::Drop(*ratio);
    }
    if (own.kind != LinkKind::kBatchNorm) return;
    const auto shape = ReadBatchNormShape(spec);
    CKPLAN_CHECK(shape.ok(), "a prepared operator has a shape");
    const Channels channels = Channels::Of(shape->view);
    map_.positions = Divider(channels.positions);
    map_.channels = Divider(channels.channels);
    map_.has_blocks = ChannelBlocks::Cover(channels);
    if (map_.has_blocks) map_.blocks = ChannelBlocks(channels);
  }

  // Sets a link's addresses.
  void Point(const OpSpec& spec, const ForwardCall& call, size_t i, FusedLink& own) const {
    const size_t position = links_[i].position;
    if (own.operand != LinkOperand::kNone) {
      own.in = FloatsIn(call.inputs[position], spec.input(position).type);
    }
    if (own.kind == LinkKind::kWhere) {
      own.chosen = FloatsIn(call.inputs[1], spec.input(1).type);
    }
    own.seed = call.seed;
    if (own.kind == LinkKind::kIsNan) {
      own.flags = static_cast<uint8_t*>(call.outputs[0]);
    } else {
      own.out = FloatsOut(call.outputs[0], spec.output(0).type);
    }
  }

  Device& device_;
  std::vector<ChainedOp> ops_;
  std::vector<ChainLink> links_;
  ChainMap map_{};
};

}  // namespace

std::unique_ptr<FusedForward> MakeFusedChain(std::span<const ChainedOp> ops, Device& device) {
  return std::make_unique<FusedChain>(ops, device);
}

std::unique_ptr<FusedForward> MakeFused(std::span<const ChainedOp> ops, Device& device) {
  return AreScores(ops) ? MakeFusedScores(ops, device) : MakeFusedChain(ops, device);
}

// Adds a mask to scores and computes their softmax.

namespace {

// The sum as the Add stores it. It is stored only if something else reads it.
struct MaskedRows {
  FloatsIn scores, mask;
  FloatsOut sums;
  bool rounds;  // The sum is bfloat16.
  int64_t size;
  DeviceLayout<1> mask_rows;  // A row's offset in the mask.

  CKPLAN_DEVICE Float4 Load(int64_t row, int g) const {
    const int64_t group = row * (size / kVector) + g;
    Float4 values = scores.Load(group);
    const Float4 terms = mask.Load(mask_rows.FindOne(0, row) / kVector + g);
    CKPLAN_UNROLL
    for (int lane = 0; lane < kVector; ++lane) {
      values.at[lane] += terms.at[lane];
      if (rounds) values.at[lane] = FromBFloat16(ToBFloat16(values.at[lane]));
    }
    if (!sums.is_null()) sums.Store(group, values);
    return values;
  }
};

// The offsets of the mask's rows: the layout of all axes but the last.
Layout MaskRows(const Dims& scores, const Dims& mask) {
  const Dims rows(scores.begin(), scores.end() - 1);
  const Dims mask_rows(mask.begin(), mask.end() - 1);
  Dims strides = BroadcastStrides(mask_rows, rows);
  for (int64_t& stride : strides) stride *= mask.back();
  if (rows.empty()) return {{1}, {{0}}};
  return Collapse(rows, {strides});
}

class FusedScores final : public FusedForward {
 public:
  FusedScores(const OpSpec& add, const OpSpec& softmax, Device& device)
      : device_(device),
        first_(FirstInput(add)),
        size_(add.output(0).dims.back()),
        rows_(add.output(0).elements() / size_),
        scores_type_(add.input(first_).type),
        mask_type_(add.input(1 - first_).type),
        sum_type_(add.output(0).type),
        y_type_(softmax.output(0).type),
        mask_rows_(MaskRows(add.output(0).dims, add.input(1 - first_).dims)) {}

  void Run(std::span<const ForwardCall> calls) override {
    const ForwardCall& add = calls[0];
    const MaskedRows rows{FloatsIn(add.inputs[first_], scores_type_),
                          FloatsIn(add.inputs[1 - first_], mask_type_),
                          FloatsOut(add.outputs[0], sum_type_),
                          sum_type_ == ElementType::kBFloat16,
                          size_,
                          mask_rows_};
    const FloatsOut y(calls[1].outputs[0], y_type_);
    if (FitsFewGroups(size_)) {
      ForRowsByWarps(device_, rows_,
                     RegisterSoftmax<false, kFewGroups, MaskedRows>{size_, rows, y});
    } else {
      ForRowsByWarps(device_, rows_,
                     RegisterSoftmax<false, kManyGroups, MaskedRows>{size_, rows, y});
    }
  }

 private:
  Device& device_;
  size_t first_;
  int64_t size_, rows_;
  ElementType scores_type_, mask_type_, sum_type_, y_type_;
  DeviceLayout<1> mask_rows_;
};

}  // namespace

std::unique_ptr<FusedForward> MakeFusedScores(std::span<const ChainedOp> ops, Device& device) {
  return std::make_unique<FusedScores>(*ops[0].spec, *ops[1].spec, device);
}

}  // namespace ckplan::cuda

#include "lib/executor/cuda/testing/ptx/compute.h"

#include <cmath>
#include <functional>
#include <type_traits>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/ptx/lanes.h"

namespace ckplan::ptx {
namespace {

// Computes an instruction for some lanes.
class Computation {
 public:
  Computation(const Instruction& instruction, LaneRegisters registers, LaneMask lanes,
              LaneMask& carries)
      : i_(instruction), registers_(registers), lanes_(lanes), carries_(carries) {}

  void Run() {
    switch (i_.opcode) {
      case Opcode::kMov:
        return Bits([](uint64_t a) { return a; });
      case Opcode::kAdd:
      case Opcode::kSub:
        return AddOrSubtract();
      case Opcode::kMul:
      case Opcode::kDiv:
      case Opcode::kRem:
      case Opcode::kMin:
      case Opcode::kMax:
        return IsFloat(i_.type) ? FloatBinary() : IntegerBinary();
      case Opcode::kAnd:
        return Bits([](uint64_t a, uint64_t b) { return a & b; });
      case Opcode::kOr:
        return Bits([](uint64_t a, uint64_t b) { return a | b; });
      case Opcode::kXor:
        return Bits([](uint64_t a, uint64_t b) { return a ^ b; });
      case Opcode::kNot:
        if (i_.type == Type::kPred) return Bits([](uint64_t a) { return (a & 1) ^ 1; });
        return Integers([](auto a) { return static_cast<decltype(a)>(~a); });
      case Opcode::kShl:
      case Opcode::kShr:
        return Shift();
      case Opcode::kMulWide:
      case Opcode::kMadWide:
      case Opcode::kMulHigh:
        return Products();
      case Opcode::kMad:
      case Opcode::kMadHigh:
        return MultiplyAdd();
      case Opcode::kFma:
        return Fma();
      case Opcode::kNeg:
      case Opcode::kAbs:
        return Signs();
      case Opcode::kCopysign:  // The sign of a, and the rest of b.
        return WithFloat(i_.type, [&](auto zero) {
          using T = decltype(zero);
          Values<T>([](T a, T b) { return BitsOf(std::copysign(b, a)); });
        });
      case Opcode::kEx2:
      case Opcode::kRcp:
      case Opcode::kRsqrt:
      case Opcode::kSqrt:
        return FloatUnary();
      case Opcode::kSetp:
        return Compare();
      case Opcode::kSelp:
        return Bits([](uint64_t a, uint64_t b, uint64_t c) { return (c & 1) != 0 ? a : b; });
      case Opcode::kCvt:
        return Convert();
      case Opcode::kClz:
        return Integers([](auto a) {
          constexpr int kUnused = 64 - 8 * static_cast<int>(sizeof(a));
          const uint64_t bits = BitsOf(a);
          return static_cast<uint32_t>(
              bits == 0 ? 8 * sizeof(a) : static_cast<size_t>(__builtin_clzll(bits) - kUnused));
        });
      case Opcode::kBfi:
        return InsertBits();
      case Opcode::kPrmt:
        return Bits(&Computation::Permuted);
      case Opcode::kPack:
      case Opcode::kUnpack:
        return Pack();
      default:
        CKPLAN_CHECK(false, "the instruction is a computation");
    }
  }

 private:
  // Calls body with the bits of its operands, and stores the result.
  template <typename Body>
  void Bits(const Body& body) {
    uint64_t* const to = registers_.Row(i_.to);
    const uint64_t* const a = registers_.Row(i_.a);
    if constexpr (std::is_invocable_v<Body, uint64_t>) {
      ForLanes(lanes_, [&](int lane) { to[lane] = body(a[lane]); });
    } else {
      const uint64_t* const b = registers_.Row(i_.b);
      if constexpr (std::is_invocable_v<Body, uint64_t, uint64_t>) {
        ForLanes(lanes_, [&](int lane) { to[lane] = body(a[lane], b[lane]); });
      } else {
        const uint64_t* const c = registers_.Row(i_.c);
        ForLanes(lanes_, [&](int lane) { to[lane] = body(a[lane], b[lane], c[lane]); });
      }
    }
  }

  // Calls body with operands of type T; it returns bits.
  template <typename T, typename Body>
  void Values(const Body& body) {
    if constexpr (std::is_invocable_v<Body, T>) {
      Bits([&](uint64_t a) { return body(ValueOf<T>(a)); });
    } else if constexpr (std::is_invocable_v<Body, T, T>) {
      Bits([&](uint64_t a, uint64_t b) { return body(ValueOf<T>(a), ValueOf<T>(b)); });
    } else {
      Bits([&](uint64_t a, uint64_t b, uint64_t c) {
        return body(ValueOf<T>(a), ValueOf<T>(b), ValueOf<T>(c));
      });
    }
  }

  // Calls an integer function with integers of the instruction's type.
  template <typename Body>
  void Integers(const Body& body) {
    WithInteger(i_.type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_invocable_v<Body, T>) {
        Values<T>([&](T a) { return BitsOf(body(a)); });
      } else {
        Values<T>([&](T a, T b) { return BitsOf(body(a, b)); });
      }
    });
  }

  template <typename T>
  T Input(T value) const {
    return i_.flushes ? Flushed(value) : value;
  }
  template <typename T>
  uint64_t Output(T value) const {
    return FloatBits(i_.flushes ? Flushed(value) : value);
  }

  // ---- Sums and products ------------------------------------------------------------------------

  void AddOrSubtract() {
    if (i_.sets_carry || i_.adds_carry) return AddWithCarry();
    const bool adds = i_.opcode == Opcode::kAdd;
    if (!IsFloat(i_.type)) {
      if (adds) return Integers([](auto a, auto b) { return Wrapped(a, b, std::plus<>()); });
      return Integers([](auto a, auto b) { return Wrapped(a, b, std::minus<>()); });
    }
    const RoundingScope scope(i_.rounding);
    WithFloat(i_.type, [&](auto zero) {
      using T = decltype(zero);
      Values<T>([&](T a, T b) { return Output(adds ? Input(a) + Input(b) : Input(a) - Input(b)); });
    });
  }

  // Computes with unsigned integers, which wrap.
  template <typename T, typename Operation>
  static T Wrapped(T a, T b, Operation operation) {
    return static_cast<T>(operation(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }

  void SetCarry(int lane, bool carry) {
    const LaneMask bit = LaneMask{1} << lane;
    carries_ = carry ? carries_ | bit : carries_ & ~bit;
  }

  // For 32-bit integers. A borrow is an inverted carry.
  void AddWithCarry() {
    uint64_t* const to = registers_.Row(i_.to);
    const uint64_t* const a = registers_.Row(i_.a);
    const uint64_t* const b = registers_.Row(i_.b);
    const bool adds = i_.opcode == Opcode::kAdd;
    ForLanes(lanes_, [&](int lane) {
      const uint64_t left = ValueOf<uint32_t>(a[lane]);
      const uint64_t right = ValueOf<uint32_t>(b[lane]);
      const uint64_t flag = (carries_ >> lane) & 1U;
      uint64_t sum = 0;
      if (adds) {
        sum = left + right + (i_.adds_carry ? flag : 0);
      } else {
        sum = left + (right ^ 0xFFFFFFFFU) + (i_.adds_carry ? flag : 1);
      }
      to[lane] = sum & 0xFFFFFFFFU;
      if (i_.sets_carry) SetCarry(lane, (sum >> 32) != 0);
    });
  }

  void MultiplyAdd() {
    const bool is_high = i_.opcode == Opcode::kMadHigh;
    if (SizeOf(i_.type) != 4) {
      WithInteger(i_.type, [&](auto zero) {
        using T = decltype(zero);
        Values<T>([](T a, T b, T c) {
          return BitsOf(static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
                                       static_cast<uint64_t>(c)));
        });
      });
      return;
    }
    uint64_t* const to = registers_.Row(i_.to);
    ForLanes(lanes_, [&](int lane) {
      const uint64_t product = Product32(lane);
      uint64_t sum = (is_high ? product >> 32 : product) & 0xFFFFFFFFU;
      sum += ValueOf<uint32_t>(registers_.Bits(i_.c, lane));
      if (i_.adds_carry) sum += (carries_ >> lane) & 1U;
      to[lane] = sum & 0xFFFFFFFFU;
      if (i_.sets_carry) SetCarry(lane, (sum >> 32) != 0);
    });
  }

  uint64_t Product32(int lane) const {
    const uint64_t a = registers_.Bits(i_.a, lane);
    const uint64_t b = registers_.Bits(i_.b, lane);
    if (!IsSigned(i_.type)) return uint64_t{ValueOf<uint32_t>(a)} * ValueOf<uint32_t>(b);
    return static_cast<uint64_t>(int64_t{ValueOf<int32_t>(a)} * ValueOf<int32_t>(b));
  }

  void Products() {
    uint64_t* const to = registers_.Row(i_.to);
    if (i_.opcode == Opcode::kMulWide && SizeOf(i_.type) < 4) {
      return WithInteger(i_.type, [&](auto zero) {
        using T = decltype(zero);
        Values<T>(
            [](T a, T b) { return BitsOf(static_cast<int32_t>(a) * static_cast<int32_t>(b)); });
      });
    }
    ForLanes(lanes_, [&](int lane) {
      const uint64_t product = Product32(lane);
      if (i_.opcode == Opcode::kMulHigh) {
        to[lane] = product >> 32;
      } else {
        const bool adds = i_.opcode == Opcode::kMadWide;
        to[lane] = product + (adds ? registers_.Bits(i_.c, lane) : 0);
      }
    });
  }

  void Fma() {
    const RoundingScope scope(i_.rounding);
    WithFloat(i_.type, [&](auto zero) {
      using T = decltype(zero);
      Values<T>([&](T a, T b, T c) { return Output(std::fma(Input(a), Input(b), Input(c))); });
    });
  }

  // ---- Other arithmetic -------------------------------------------------------------------------

  void FloatBinary() {
    const RoundingScope scope(i_.rounding);
    WithFloat(i_.type, [&](auto zero) {
      using T = decltype(zero);
      const auto all = [&](auto operation) {
        Values<T>([&](T a, T b) { return Output(operation(Input(a), Input(b))); });
      };
      switch (i_.opcode) {
        case Opcode::kMul:
          return all([](T a, T b) { return a * b; });
        case Opcode::kDiv:
          return all([](T a, T b) { return a / b; });
        case Opcode::kMin:
          return all([](T a, T b) { return Smaller(a, b); });
        default:
          return all([](T a, T b) { return Larger(a, b); });
      }
    });
  }

  void IntegerBinary() {
    switch (i_.opcode) {
      case Opcode::kMul:
        return Integers([](auto a, auto b) { return Wrapped(a, b, std::multiplies<>()); });
      case Opcode::kDiv:  // Dividing by zero gives all ones on a GPU.
        return Integers([](auto a, auto b) {
          using T = decltype(a);
          if (b == 0) return static_cast<T>(~T{0});
          if (std::is_signed_v<T> && b == static_cast<T>(-1))
            return Wrapped(T{0}, a, std::minus<>());
          return static_cast<T>(a / b);
        });
      case Opcode::kRem:
        return Integers([](auto a, auto b) {
          using T = decltype(a);
          if (b == 0) return a;
          if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
          return static_cast<T>(a % b);
        });
      case Opcode::kMin:
        return Integers([](auto a, auto b) { return b < a ? b : a; });
      default:
        return Integers([](auto a, auto b) { return a < b ? b : a; });
    }
  }

  void Shift() {
    const bool is_left = i_.opcode == Opcode::kShl;
    WithInteger(i_.type, [&](auto zero) {
      using T = decltype(zero);
      constexpr uint32_t kBits = 8 * sizeof(T);
      Bits([&](uint64_t bits, uint64_t amount) {
        const T a = ValueOf<T>(bits);
        const uint32_t by = ValueOf<uint32_t>(amount);
        if (by >= kBits) return BitsOf(static_cast<T>(!is_left && a < 0 ? -1 : 0));
        if (is_left) return BitsOf(static_cast<T>(static_cast<uint64_t>(a) << by));
        return BitsOf(static_cast<T>(a >> by));
      });
    });
  }

  void Signs() {
    const bool negates = i_.opcode == Opcode::kNeg;
    if (!IsFloat(i_.type)) {
      return Integers([&](auto a) {
        using T = decltype(a);
        return negates || a < 0 ? Wrapped(T{0}, a, std::minus<>()) : a;
      });
    }
    const uint64_t sign = i_.type == Type::kF32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
    Bits([&](uint64_t a) { return negates ? a ^ sign : a & ~sign; });
  }

  void FloatUnary() {
    WithFloat(i_.type, [&](auto zero) {
      using T = decltype(zero);
      const auto all = [&](auto operation) {
        Values<T>([&](T a) { return Output(operation(Input(a))); });
      };
      switch (i_.opcode) {
        case Opcode::kEx2:
          return all([](T a) { return std::exp2(a); });
        case Opcode::kRcp:
          return all([](T a) { return T{1} / a; });
        case Opcode::kSqrt:
          return all([](T a) { return std::sqrt(a); });
        default:
          return all([](T a) { return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a))); });
      }
    });
  }

  // ---- Predicates, conversions and bits ---------------------------------------------------------

  void Compare() {
    WithType(i_.type, [&](auto zero) {
      using T = decltype(zero);
      Values<T>([&](T a, T b) { return uint64_t{IsTrue(a, b)}; });
    });
  }

  template <typename T>
  bool IsTrue(T a, T b) const {
    const bool has_nan = a != a || b != b;
    switch (i_.comparison) {
      case Comparison::kEqual:
        return a == b;
      case Comparison::kNotEqual:
        return a != b && !has_nan;
      case Comparison::kLess:
        return a < b;
      case Comparison::kLessEqual:
        return a <= b;
      case Comparison::kGreater:
        return a > b;
      case Comparison::kGreaterEqual:
        return a >= b;
      case Comparison::kEqualUnordered:
        return a == b || has_nan;
      case Comparison::kNotEqualUnordered:
        return a != b;
      case Comparison::kLessUnordered:
        return a < b || has_nan;
      case Comparison::kLessEqualUnordered:
        return a <= b || has_nan;
      case Comparison::kGreaterUnordered:
        return a > b || has_nan;
      case Comparison::kGreaterEqualUnordered:
        return a >= b || has_nan;
      case Comparison::kNan:
        return has_nan;
      case Comparison::kNumber:
        return !has_nan;
    }
    return false;
  }

  void Convert() {
    WithType(i_.from_type, [&](auto from_zero) {
      using From = decltype(from_zero);
      WithType(i_.type, [&](auto to_zero) {
        using To = decltype(to_zero);
        Values<From>([&](From a) { return Converted<To>(a); });
      });
    });
  }

  template <typename To, typename From>
  uint64_t Converted(From a) const {
    if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
      const From value = i_.rounds_to_integer ? RoundedToInteger(Input(a), i_.rounding) : Input(a);
      return Output(Saturated(static_cast<To>(value)));
    } else if constexpr (std::is_floating_point_v<To>) {
      return Output(Saturated(static_cast<To>(a)));
    } else if constexpr (std::is_floating_point_v<From>) {
      return BitsOf(ToInteger<To>(RoundedToInteger(Input(a), i_.rounding)));
    } else {
      return ExtendedBits(static_cast<To>(a));
    }
  }

  template <typename T>
  T Saturated(T value) const {
    if (!i_.saturates) return value;
    if (!(value > 0)) return 0;  // Includes NaN.
    return value < 1 ? value : 1;
  }

  // Inserts the low bits of a into b.
  void InsertBits() {
    ForLanes(lanes_, [&](int lane) {
      const auto position = static_cast<uint32_t>(registers_.Bits(i_.c, lane)) & 0xFFU;
      const auto length = static_cast<uint32_t>(registers_.Bits(i_.d, lane)) & 0xFFU;
      const uint64_t field = length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1;
      const uint64_t mask = position >= 64 ? 0 : field << position;
      const uint64_t value = position >= 64 ? 0 : registers_.Bits(i_.a, lane) << position;
      uint64_t result = (registers_.Bits(i_.b, lane) & ~mask) | (value & mask);
      if (SizeOf(i_.type) == 4) result &= 0xFFFFFFFFU;
      registers_.Row(i_.to)[lane] = result;
    });
  }

  // Picks four of the eight bytes of a and b: each digit of c selects one, or repeats its sign.
  static uint64_t Permuted(uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t bytes = (b & 0xFFFFFFFFU) << 32 | (a & 0xFFFFFFFFU);
    uint64_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t pick = (c >> (4 * i)) & 0xFU;
      uint64_t byte = (bytes >> (8 * (pick & 7U))) & 0xFFU;
      if ((pick & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xFF : 0;
      result |= byte << (8 * i);
    }
    return result;
  }

  // The lowest part is the vector's first register.
  void Pack() {
    const auto bits = static_cast<uint32_t>(8 * SizeOf(i_.type) / i_.vector);
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    ForLanes(lanes_, [&](int lane) {
      if (i_.opcode == Opcode::kUnpack) {
        const uint64_t value = registers_.Bits(i_.a, lane);
        for (uint32_t k = 0; k < i_.vector; ++k) {
          registers_.Row(i_.vectors[k])[lane] = (value >> (k * bits)) & mask;
        }
        return;
      }
      uint64_t value = 0;
      for (uint32_t k = 0; k < i_.vector; ++k) {
        value |= (registers_.Bits(i_.vectors[k], lane) & mask) << (k * bits);
      }
      registers_.Row(i_.to)[lane] = value;
    });
  }

  const Instruction& i_;
  LaneRegisters registers_;
  LaneMask lanes_;
  LaneMask& carries_;
};

}  // namespace

void Compute(const Instruction& instruction, LaneRegisters registers, LaneMask lanes,
             LaneMask& carries) {
  Computation(instruction, registers, lanes, carries).Run();
}

}  // namespace ckplan::ptx

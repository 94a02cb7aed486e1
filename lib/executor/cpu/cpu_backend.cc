#include "lib/executor/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "lib/base/check.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/problem/ops/families.h"

namespace ckplan::cpu {

const OpTable<OpRow>& Table() {
  static constexpr OpTable<OpRow>::Family kFamilies[] = {
#define CKPLAN_FAMILY(Name) Name##Ops,
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
  };
  static const OpTable<OpRow> table(kFamilies);
  return table;
}

Error Unsupported(const OpSpec& spec, std::string_view what) {
  return UnsupportedOp(spec, "cpu", what);
}

namespace {

constexpr int64_t kAllocationAlignment = 64;
constexpr int64_t kDigestBlock = 1 << 16;  // Bytes per block; each block has its own digest.

// One mixing step of a 64-bit hash in the style of xxh64: multiply, rotate.
uint64_t Mix(uint64_t hash, uint64_t word) {
  hash ^= word * 0x9E3779B97F4A7C15u;
  return ((hash << 27) | (hash >> 37)) * 0xC2B2AE3D27D4EB4Fu;
}

uint64_t HashBlock(const unsigned char* bytes, int64_t size) {
  uint64_t hash = static_cast<uint64_t>(size);
  int64_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, 8);
    hash = Mix(hash, word);
  }
  for (; i < size; ++i) hash = Mix(hash, bytes[i]);
  return hash;
}

void FindNans(const unsigned char* bytes, int64_t size, int64_t first_index, BufferDigest& digest) {
  for (int64_t i = 0; i + 4 <= size; i += 4) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes + i, 4);
    if ((bits & 0x7FFFFFFFu) <= 0x7F800000u) continue;
    digest.has_nan = true;
    if (bits != kPoison) continue;
    digest.first_poison = first_index + i / 4;
    return;
  }
}

// Returns how many bytes this process can still allocate: the machine's free memory, ignoring the
// limits of control groups.
int64_t FreeMemory() {
  std::ifstream info("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  std::string unit;
  while (info >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(info, unit);
  }
  return std::numeric_limits<int64_t>::max();
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : threads_(threads > 0 ? threads : omp_get_num_procs()) {
    omp_set_dynamic(0);
    omp_set_num_threads(threads_);
  }

  std::string_view name() const override { return "cpu"; }
  std::string Describe() const override {
    return fmt::format("{} thread{}", threads_, threads_ == 1 ? "" : "s");
  }
  int64_t alignment() const override { return 8; }

  std::vector<OpSupport> Operators() const override { return Table().Support(); }

  Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) override {
    const OpRow* row = Table().Find(spec.type);
    if (row == nullptr) return Unsupported(spec, "it has no kernel for this operator");
    for (const auto* operands : {&spec.inputs, &spec.outputs}) {
      for (const Operand& operand : *operands) {
        if (operand.is_present && operand.type == ElementType::kBFloat16) {
          return Unsupported(spec, "it stores floats only as float32");
        }
      }
    }
    CKPLAN_RETURN_IF_ERROR(ValidateOp(spec));
    return row->prepare(spec);
  }

  int64_t AvailableBytes() const override { return FreeMemory(); }

  Result<void*> Allocate(int64_t bytes) override {
    // Linux grants more memory than exists and kills the process later, so check first.
    const int64_t left = FreeMemory();
    void* memory = nullptr;
    if (bytes <= left) {
      const auto size = static_cast<size_t>((bytes + kAllocationAlignment - 1) /
                                            kAllocationAlignment * kAllocationAlignment);
      memory =
          std::aligned_alloc(kAllocationAlignment, std::max<size_t>(size, kAllocationAlignment));
    }
    if (memory != nullptr) return memory;
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("{} bytes of memory are needed at once, and this machine has {} "
                                 "left; use a smaller batch",
                                 bytes, left));
  }
  void Release(void* memory) override { std::free(memory); }

  void Upload(void* to_device, const void* from_host, int64_t bytes) override {
    Copy(to_device, from_host, bytes);
  }
  void Download(void* to_host, const void* from_device, int64_t bytes) override {
    Copy(to_host, from_device, bytes);
  }
  void Copy(void* to, const void* from, int64_t bytes) override {
    ParallelFor(bytes, kDigestBlock, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                  static_cast<size_t>(end - begin));
    });
  }

  void Poison(void* memory, int64_t bytes) override {
    auto* at = static_cast<unsigned char*>(memory);
    ParallelFor(bytes, kDigestBlock, [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      for (; i + 4 <= end; i += 4) std::memcpy(at + i, &kPoison, 4);
      for (; i < end; ++i) at[i] = 0xFF;
    });
  }
  void Zero(void* memory, int64_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, static_cast<size_t>(bytes));
  }

  void AddScaled(void* into, const void* from, ElementType type, float scale,
                 int64_t count) override {
    CKPLAN_CHECK(type == ElementType::kFloat32, "this backend stores floats only as float32");
    auto* to = static_cast<float*>(into);
    const auto* x = static_cast<const float*>(from);
    ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += scale * x[i];
    });
  }

  BufferDigest Inspect(const void* memory, int64_t bytes, ElementType type) override {
    const auto* at = static_cast<const unsigned char*>(memory);
    const auto blocks = static_cast<size_t>((bytes + kDigestBlock - 1) / kDigestBlock);
    std::vector<BufferDigest> parts(blocks);
    ParallelFor(bytes, kDigestBlock, [&](int64_t begin, int64_t end) {
      BufferDigest& part = parts[static_cast<size_t>(begin / kDigestBlock)];
      part.hash = HashBlock(at + begin, end - begin);
      if (IsFloat(type)) FindNans(at + begin, end - begin, begin / 4, part);
    });
    BufferDigest whole;
    for (const BufferDigest& part : parts) {
      whole.hash = Mix(whole.hash, part.hash);
      if (whole.first_poison < 0) whole.first_poison = part.first_poison;
      whole.has_nan = whole.has_nan || part.has_nan;
    }
    return whole;
  }

  void Synchronize() override {}

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(int threads) {
  return std::make_unique<CpuBackend>(threads);
}

}  // namespace ckplan::cpu

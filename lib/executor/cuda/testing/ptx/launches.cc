#include "lib/executor/cuda/testing/ptx/launches.h"

#include <cuda_runtime.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"
#include "lib/executor/cuda/testing/ptx/decoder.h"
#include "lib/executor/cuda/testing/ptx/interpreter.h"
#include "lib/executor/cuda/testing/ptx/module_text.h"

namespace ckplan::ptx {

namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) FailCheck(__FILE__, __LINE__, "playing PTX", result.error().message);
  return std::move(result).value();
}

std::string Demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

struct Kernel {
  const ModuleText* module = nullptr;
  const GlobalAddresses* globals = nullptr;
  std::string name;
  std::optional<Program> program;  // Decoded at the first launch.
};

// All modules and kernels of this program.
class KernelTable {
 public:
  void AddModule(const unsigned char* container) {
    const std::string text = Must(PtxIn(container));
    CKPLAN_CHECK(FindContractible(text).empty(), "kernels are compiled with -fmad=false");
    if (const char* folder = std::getenv("CKPLAN_PTX_TEXTS")) {
      std::ofstream(fmt::format("{}/{}.ptx", folder, modules_.size())) << text;
    }
    modules_.push_back({Must(ModuleText::Read(text)), {}, {}});
    Module& module = modules_.back();
    for (const VariableText& variable : module.text.globals()) {
      const int64_t bytes = variable.elements * SizeOf(TypeNamed(variable.type));
      module.memory.emplace_back(static_cast<size_t>(bytes));
      std::vector<unsigned char>& memory = module.memory.back();
      std::copy(variable.contents.begin(), variable.contents.end(), memory.begin());
      const auto begin = reinterpret_cast<uint64_t>(memory.data());
      module.globals.emplace(variable.name, begin);
      constants_.push_back({begin, begin + static_cast<uint64_t>(bytes)});
    }
  }

  // Adds a kernel to the last added module. `host` is its function in the host's code.
  void AddKernel(const void* host, const char* name) {
    kernels_[host] = {&modules_.back().text, &modules_.back().globals, name, std::nullopt};
  }

  Kernel& Find(const void* host) {
    const auto found = kernels_.find(host);
    CKPLAN_CHECK(found != kernels_.end(), "a started kernel is registered");
    Kernel& kernel = found->second;
    if (!kernel.program) {
      kernel.program = Must(DecodeKernel(*kernel.module, kernel.name, *kernel.globals));
      kernel.program->name = Demangled(kernel.name);
    }
    return kernel;
  }

  AddressRange RangeOf(uint64_t address) const {
    for (const AddressRange& range : constants_) {
      if (range.Contains(address, 1)) return range;
    }
    const cuda::EmulatedRange range =
        cuda::FindEmulatedRange(reinterpret_cast<const void*>(address));
    const auto begin = reinterpret_cast<uint64_t>(range.begin);
    return {begin, begin + static_cast<uint64_t>(range.bytes)};
  }

  void Run(const Program& program, const std::vector<unsigned char>& parameters,
           const LaunchShape& shape) {
    GlobalMemory global([this](uint64_t address) { return RangeOf(address); });
    const bool writes_lines = lines_.is_open();
    const LaunchCounts counts = Play(program, parameters, shape, global, findings, writes_lines);
    instructions += counts.instructions;
    if (writes_lines) lines_ << LaunchLine(program.name, shape, counts) << '\n';
  }

  void WriteLines(const std::string& path) {
    lines_.open(path);
    CKPLAN_CHECK(lines_.is_open(), "the launch file can be written");
  }

  const std::map<const void*, Kernel>& kernels() const { return kernels_; }

  Findings findings;
  int64_t launches = 0;
  int64_t instructions = 0;

 private:
  struct Module {
    ModuleText text;
    GlobalAddresses globals;
    std::deque<std::vector<unsigned char>> memory;
  };

  std::deque<Module> modules_;
  std::map<const void*, Kernel> kernels_;
  std::vector<AddressRange> constants_;
  std::ofstream lines_;
};

// Global, because the runtime's functions have no argument that identifies the program.
KernelTable& Table() {
  static KernelTable table;
  return table;
}

cudaError_t StartKernel(const void* host, dim3 grid, dim3 block, void** arguments,
                        size_t shared_bytes, cudaStream_t stream) {
  CKPLAN_CHECK(grid.y == 1 && grid.z == 1 && block.y == 1 && block.z == 1 && shared_bytes == 0,
               "kernels have one axis and no dynamic shared memory");
  const Program& program = *Table().Find(host).program;
  std::vector<unsigned char> parameters(static_cast<size_t>(program.parameter_bytes));
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter& parameter = program.parameters[i];
    std::memcpy(parameters.data() + parameter.offset, arguments[i],
                static_cast<size_t>(parameter.bytes));
  }
  ++Table().launches;
  const LaunchShape shape{grid.x, block.x};
  cuda::EnqueueEmulatedKernel(stream, shape.blocks, shape.threads,
                              [&program, parameters = std::move(parameters), shape] {
                                Table().Run(program, parameters, shape);
                              });
  return cudaSuccess;
}

// Passed by <<<...>>> from the caller to the function that starts the kernel.
struct PushedConfiguration {
  dim3 grid, block;
  size_t shared_bytes = 0;
  void* stream = nullptr;
} pushed;

}  // namespace

Coverage CoverageSoFar() {
  Coverage coverage;
  coverage.launches = Table().launches;
  coverage.instructions = Table().instructions;
  for (const auto& [host, kernel] : Table().kernels()) {
    coverage.kernels[Demangled(kernel.name)] |= kernel.program.has_value();
  }
  return coverage;
}

Findings& FindingsSoFar() { return Table().findings; }

void WriteLaunches(const std::string& path) { Table().WriteLines(path); }

void AppendKernels(const std::string& path) {
  std::string lines;
  for (const auto& [name, has_run] : CoverageSoFar().kernels) {
    lines += fmt::format("{}: {}\n", has_run ? "run" : "not run", name);
  }
  std::ofstream file(path, std::ios::app);
  file << lines;
  CKPLAN_CHECK(file.flush().good(), "the kernel file can be written");
}

bool ReportEmulated() {
  const Coverage coverage = CoverageSoFar();
  const auto run = std::count_if(coverage.kernels.begin(), coverage.kernels.end(),
                                 [](const auto& kernel) { return kernel.second; });
  fmt::print(stderr, "ptx: {} of {} kernels run, {} launches, {} instructions; {} findings\n", run,
             coverage.kernels.size(), coverage.launches, coverage.instructions,
             FindingsSoFar().counts().size());
  for (const auto& [what, count] : FindingsSoFar().counts()) {
    fmt::print(stderr, "ptx: {} times: {}\n", count, what);
  }
  return FindingsSoFar().empty();
}

}  // namespace ckplan::ptx

// ---- The functions that nvcc's objects call -----------------------------------------------------

extern "C" {

// nvcc wraps an object's container in this struct.
struct FatBinaryWrapper {
  int magic;
  int version;
  const unsigned char* container;
  void* unused;
};

void** __cudaRegisterFatBinary(void* wrapper) {
  ckplan::ptx::Table().AddModule(static_cast<const FatBinaryWrapper*>(wrapper)->container);
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  ckplan::ptx::Table().AddKernel(host, name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     CUstream_st* stream) {
  ckplan::ptx::pushed = {grid, block, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  *grid = ckplan::ptx::pushed.grid;
  *block = ckplan::ptx::pushed.block;
  *shared_bytes = ckplan::ptx::pushed.shared_bytes;
  std::memcpy(stream, &ckplan::ptx::pushed.stream, sizeof(void*));
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return ckplan::ptx::StartKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return ckplan::ptx::StartKernel(host, grid, block, arguments, shared_bytes, stream);
}

}  // extern "C"

namespace ckplan::ptx {

// Reports what was emulated when the program ends. A finding makes the program fail.
//
//   CKPLAN_PTX_KERNELS=FILE   appends a line for each kernel: "run: NAME" or "not run: NAME";
//                             scripts/lint.d/kernel_coverage.py adds up the lines of several
//                             programs
//   CKPLAN_PTX_LAUNCHES=FILE  writes a line of JSON for each launch, with its instructions and the
//                             bytes and sectors that it read and wrote (memory.h)
//   CKPLAN_PTX_TEXTS=FOLDER   writes the PTX of each module, for scripts/lint.d/contraction.py

namespace {

constexpr int kFailed = 70;

struct ReportAtExit {
  ReportAtExit() {
    (void)FindingsSoFar();  // Makes the findings outlive this object.
    if (const char* path = std::getenv("CKPLAN_PTX_LAUNCHES")) WriteLaunches(path);
  }
  ~ReportAtExit() {
    if (const char* path = std::getenv("CKPLAN_PTX_KERNELS")) AppendKernels(path);
    if (ReportEmulated()) return;
    std::fflush(nullptr);
    std::_Exit(kFailed);
  }
};
const ReportAtExit report_at_exit;

}  // namespace

}  // namespace ckplan::ptx

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cli/ckbench/commands.h"
#include "cli/ckbench/gpu_model.h"
#include "cli/common/request_flags.h"
#include "lib/executor/core/element_orders.h"
#include "lib/executor/cuda/traffic/element_orders.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"

namespace ckplan {
namespace {

struct GpuModelRequest {
  std::string file;
  RequestFlags flags{Reading::kOperators};
  std::string precision = "tf32";
  std::optional<std::string> device;
  std::string attention = "fused";
  std::string rows = "operators";
  std::string format = "text";
};

CommandLine GpuModelCommandLine(GpuModelRequest* request) {
  CommandLine line("ckbench gpu-model",
                   "ckbench gpu-model testdata/models/resnet50.onnx -D N=256 --type bf16",
                   "Derives what the kernels of a step move on a GPU and how long they take, "
                   "beside PyTorch's.");
  line.Positional("MODEL", "the model to derive it for", &request->file);
  request->flags.Add(line, "dims");
  request->flags.Add(line, "input_shapes");
  request->flags.Add(line, "fused");
  line.Choice("--type", {"tf32", "fp32", "bf16"},
              "how products are computed, bf16: activations are stored so, too (default tf32)",
              &request->precision);
  line.Value("--device", "NAME", "rates of a device of `ckplan devices` (default h100-80g)",
             &request->device);
  line.Choice("--attention", {"fused", "plain"},
              "PyTorch's attention: one kernel (default), or single operators",
              &request->attention);
  line.Choice("--rows", {"operators", "kernels"}, "what has a row of its own (default operators)",
              &request->rows);
  line.Choice("-f,--format", {"text", "md"}, "format of the output", &request->format);
  return line;
}

Precision PrecisionOf(std::string_view text) {
  return text == "fp32" ? Precision::kFloat32
                        : (text == "bf16" ? Precision::kBFloat16 : Precision::kTf32);
}

std::string Gigabytes(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e9);
}
std::string Milliseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }

std::vector<std::string> Cells(const GpuModelRow& row) {
  return {row.what + (row.is_modelled ? "" : " *"),
          row.is_backward ? "backward" : "forward",
          fmt::format("{}", row.ours.kernels),
          Gigabytes(row.ours.bytes),
          row.least_bytes > 0 ? Gigabytes(row.least_bytes) : "",
          Milliseconds(row.ours.seconds),
          fmt::format("{}", row.torch.kernels),
          Gigabytes(row.torch.bytes),
          Milliseconds(row.torch.seconds)};
}

// Rows that round to nothing on both sides are left out, but counted in the total.
bool IsShown(const GpuModelRow& row) {
  constexpr double kShown = 5e-6;
  return row.ours.seconds >= kShown || row.torch.seconds >= kShown;
}

struct Totals {
  KernelSum ours, torch;
  bool is_complete = true;
};

Totals TotalsOf(const std::vector<GpuModelRow>& rows) {
  Totals totals;
  for (const GpuModelRow& row : rows) {
    totals.ours += row.ours;
    totals.torch += row.torch;
    totals.is_complete = totals.is_complete && row.is_modelled;
  }
  return totals;
}

std::string GpuModelFooter(const Totals& totals) {
  std::string text = fmt::format(
      "\nckexec: {} GB in {} kernels, {:.1f} ms. PyTorch eager: {} GB in {}, {:.1f} ms. "
      "Ratio of the times: {:.2f}\n",
      Gigabytes(totals.ours.bytes), totals.ours.kernels, totals.ours.seconds * 1e3,
      Gigabytes(totals.torch.bytes), totals.torch.kernels, totals.torch.seconds * 1e3,
      totals.ours.seconds / totals.torch.seconds);
  if (!totals.is_complete) {
    text += "* has no row in the model of kernels, and is counted once for each operand\n";
  }
  return text;
}

TextTable GpuModelTable(const std::vector<GpuModelRow>& rows) {
  TextTable table;
  table.columns = {{.name = "operator", .fit = TableColumn::Fit::kElide},
                   {.name = "pass"},
                   {.name = "kernels", .is_number = true},
                   {.name = "GB", .is_number = true},
                   {.name = "least GB", .is_number = true},
                   {.name = "ms", .is_number = true},
                   {.name = "PyTorch kernels", .is_number = true},
                   {.name = "GB", .is_number = true},
                   {.name = "ms", .is_number = true}};
  for (const GpuModelRow& row : rows) {
    if (IsShown(row)) table.rows.push_back(Cells(row));
  }
  return table;
}

}  // namespace

Result<ExitCode> RunGpuModel(std::vector<std::string> arguments) {
  GpuModelRequest request;
  CommandLine line = GpuModelCommandLine(&request);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  CKPLAN_ASSIGN_OR_RETURN(PlanRequest wanted, request.flags.Read());
  CKPLAN_ASSIGN_OR_RETURN(const Device device, FindDevice(request.device.value_or("h100-80g")));
  const Precision precision = PrecisionOf(request.precision);
  if (precision == Precision::kBFloat16) wanted.activation_type = ActivationType::kBFloat16;
  wanted.cost_model.clear();
  if (IsGraphFile(request.file)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("\"{}\" is a graph file, which has no operators; name the model",
                                 request.file));
  }
  CKPLAN_ASSIGN_OR_RETURN(const ModelSource source, LoadModelSource(request.file, wanted));
  CKPLAN_ASSIGN_OR_RETURN(StepGraph step,
                          BuildStepGraph(source.model, source.lowered, source.request.autograd));
  ChooseOrders(step, cuda::OrdersOf);
  GpuModelOptions options;
  options.rates = RatesOf(device, precision);
  options.attention =
      request.attention == "plain" ? TorchAttention::kPlain : TorchAttention::kFused;
  options.has_kernels = request.rows == "kernels";
  const std::vector<GpuModelRow> rows = ModelOfStep(step, options);
  CKPLAN_RETURN_IF_ERROR(
      PrintTable(GpuModelTable(rows), request.format, screen, GpuModelFooter(TotalsOf(rows))));
  return ExitCode::kOk;
}

}  // namespace ckplan

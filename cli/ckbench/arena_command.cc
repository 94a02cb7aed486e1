#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>

#include "cli/ckbench/commands.h"
#include "cli/common/size_arg.h"
#include "lib/base/file.h"
#include "lib/base/units.h"

namespace ckplan {
namespace {

constexpr std::string_view kHeader = "id,lower,upper,size";
constexpr int64_t kMaxTotal = int64_t{1} << 60;  // PlaceWithin requires less than 2^61.

struct ArenaRequest {
  std::vector<std::string> files;
  std::optional<std::string> capacity;
  std::optional<std::string> max_nodes;
  std::optional<std::string> seed;
  std::string format = "text";
};

struct Setting {
  int64_t capacity = 1'048'576;  // The capacity of all of minimalloc's benchmarks.
  PlacementLimits limits = {.max_nodes = 10'000'000, .seed = 0};
};

CommandLine ArenaCommandLine(ArenaRequest* request) {
  CommandLine line("ckbench arena", "ckbench arena testdata/arena/A.csv --format md",
                   "Places the buffers of benchmark files within a capacity, and prints how much "
                   "work that takes.");
  line.Positionals("FILE", "CSV files of minimalloc, with the columns id,lower,upper,size",
                   &request->files);
  line.Value("--capacity", "SIZE", "capacity for all buffers (default 1MiB)", &request->capacity);
  line.Value("--max-nodes", "N", "maximum number of placements to try (default 10000000)",
             &request->max_nodes);
  line.Value("--seed", "N", "random seed (default 0)", &request->seed);
  line.Choice("-f,--format", {"text", "md"}, "output format", &request->format);
  return line;
}

Result<Setting> ReadSetting(const ArenaRequest& request) {
  Setting setting;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (request.capacity) {
    CKPLAN_ASSIGN_OR_RETURN(const Bytes capacity, ParseSize(*request.capacity, "--capacity"));
    setting.capacity = std::min(capacity.count(), kMaxTotal);
  }
  if (request.max_nodes) {
    CKPLAN_ASSIGN_OR_RETURN(setting.limits.max_nodes,
                            ParseInteger(*request.max_nodes, "--max-nodes", 1, kMax));
  }
  if (request.seed) {
    CKPLAN_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger(*request.seed, "--seed", 0, kMax));
    setting.limits.seed = static_cast<uint64_t>(seed);
  }
  return setting;
}

// Removes the text up to and including the separator, and returns it without the separator.
std::string_view TakeUpTo(char separator, std::string_view* text) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view taken = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return taken;
}

std::optional<LiveInterval> ParseLine(std::string_view line) {
  TakeUpTo(',', &line);  // The id may be any text, as no row is printed for a buffer.
  std::array<int64_t, 3> values = {};
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view word = i + 1 < values.size() ? TakeUpTo(',', &line) : line;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), values[i]);
    if (error != std::errc() || end != word.data() + word.size() || word.empty()) {
      return std::nullopt;
    }
  }
  if (values[0] > values[1] || values[2] < 0) return std::nullopt;
  return LiveInterval{values[0], values[1], values[2]};
}

std::string_view WithoutCarriageReturn(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string ReachedText(const std::vector<LiveInterval>& intervals,
                        const IntervalPlacement& placement) {
  if (placement.outcome == PlacementOutcome::kImpossible) return "impossible";
  if (placement.outcome == PlacementOutcome::kOutOfNodes) return "not reached";
  int64_t top = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    top = std::max(top, placement.offsets[i] + intervals[i].size);
  }
  return fmt::format("{}", top);
}

Result<std::vector<std::string>> ArenaRow(const std::string& path, const Setting& setting) {
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  CKPLAN_ASSIGN_OR_RETURN(const auto intervals, ParseIntervals(text, path));
  const double begin = CpuSeconds();
  const IntervalPlacement placement = PlaceWithin(intervals, setting.capacity, setting.limits);
  const double seconds = CpuSeconds() - begin;
  return std::vector<std::string>{std::filesystem::path(path).stem().string(),
                                  fmt::format("{}", intervals.size()),
                                  fmt::format("{}", MaxLiveTotal(intervals)),
                                  fmt::format("{}", ColoredTotal(intervals)),
                                  ReachedText(intervals, placement),
                                  fmt::format("{}", placement.nodes),
                                  fmt::format("{:.2f}", seconds)};
}

}  // namespace

Result<std::vector<LiveInterval>> ParseIntervals(std::string_view text, const std::string& path) {
  if (WithoutCarriageReturn(TakeUpTo('\n', &text)) != kHeader) {
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("\"{}\" does not begin with the line \"{}\"", path, kHeader));
  }
  Error faults = MakeError(ErrorCode::kInvalidInput, "");
  std::vector<LiveInterval> intervals;
  int64_t total = 0;
  for (int64_t number = 2; !text.empty(); ++number) {
    const std::string_view line = WithoutCarriageReturn(TakeUpTo('\n', &text));
    const std::optional<LiveInterval> interval = ParseLine(line);
    const std::optional<int64_t> sum = CheckedAdd(total, interval ? interval->size : 0);
    if (!interval || !sum || *sum > kMaxTotal) {
      faults.notes.push_back(fmt::format("line {}: {}", number,
                                         interval
                                             ? "the sizes add up to more than 2^60 bytes"
                                             : "must be an id, a start, a later end, and a size"));
      continue;
    }
    total = *sum;
    intervals.push_back(*interval);
  }
  if (faults.notes.empty()) return intervals;
  faults.message = fmt::format("\"{}\" has {} faulty line{}", path, faults.notes.size(),
                               faults.notes.size() == 1 ? "" : "s");
  return faults;
}

Result<ExitCode> RunArena(std::vector<std::string> arguments) {
  ArenaRequest request;
  CommandLine line = ArenaCommandLine(&request);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  CKPLAN_ASSIGN_OR_RETURN(const Setting setting, ReadSetting(request));
  TextTable table;
  table.columns = {{.name = "benchmark"},
                   {.name = "buffers", .is_number = true},
                   {.name = "lower bound", .is_number = true},
                   {.name = "colouring", .is_number = true},
                   {.name = "reached bytes", .is_number = true},
                   {.name = "nodes", .is_number = true},
                   {.name = "CPU s", .is_number = true}};
  Progress progress(screen.shows_progress);
  for (const std::string& path : request.files) {
    progress.Stage(fmt::format("placing {}", path));
    CKPLAN_ASSIGN_OR_RETURN(std::vector<std::string> row, ArenaRow(path, setting));
    table.rows.push_back(std::move(row));
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(PrintTable(table, request.format, screen));
  return ExitCode::kOk;
}

}  // namespace ckplan

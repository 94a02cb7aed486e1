// The results of `ckbench reproduce`: published figures with ours next to them.
//
// All numbers are integers in a unit's smallest step, so the output is the same to the byte
// everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

enum class FigureUnit {
  kRatio,         // 0.0001
  kReduction,     // 0.1 percent of the baseline's peak
  kMebibytes,     // 1 MiB
  kGigabytes,     // 0.1 GB (10^8 bytes)
  kFactor,        // 0.01
  kPercent,       // 0.1 percent
  kCount,         // 1
  kMilliseconds,  // 1 ms
  kMicroseconds,  // 1 us
  kCheckpoints,   // A set of layers, by number.
};

// How an algorithm's set compares with the paper's. kTie: another set of equal value.
enum class SetMatch { kSame, kTie, kDiffers };

struct Figure {
  std::string subject;   // "ResNet50": what was measured.
  std::string quantity;  // "ExactDP + MC": the algorithm, or the column of the paper.
  FigureUnit unit = FigureUnit::kRatio;
  std::optional<int64_t> ours;   // Absent if not computed; the note says why.
  std::optional<int64_t> paper;  // Absent if the paper gives no number here.
  // The paper's run ran out of memory: `paper` is the memory of its device, and the run needed
  // more.
  bool paper_ran_out = false;
  bool paper_is_limit = false;   // The paper says "at most".
  std::vector<int64_t> our_set;  // kCheckpoints
  std::vector<int64_t> paper_set;
  SetMatch match = SetMatch::kSame;
  int32_t note = 0;  // 1-based index into the table's notes; 0 for none.

  // Returns by how much ours is above the paper's, in 0.1 percent; for reductions in 0.1 percentage
  // points. Returns nothing for sets, or if one of the two is absent.
  std::optional<int64_t> Difference() const;
  // Returns whether the figure is more than 2 % off, exceeds the paper's limit, is another set, or
  // fits where the paper's run ran out of memory.
  bool NeedsExplanation() const;
};

// The groups in which figures are printed.
enum class Outcome {
  kReproduced,   // Within 2 %, or 2 points; or the same set, or one of equal value.
  kDiffers,      // A note says why.
  kNeedsGpu,     // Only a GPU can fill it in; a note says how.
  kUnpublished,  // The paper draws it, or gives no number.
};
Outcome OutcomeOf(const Figure& figure);

struct FigureTable {
  std::string title;  // "Table 1, theoretical ratio"
  std::string intro;  // The setting: what is computed, and how.
  std::vector<Figure> figures;
  std::vector<std::string> notes;

  // Returns the number of the note, which is added if it is new.
  int32_t Note(const std::string& text);
};

struct Reproduction {
  std::string key;    // "feng"
  std::string paper;  // "Feng, Huang: ..., 2018"
  std::vector<FigureTable> tables;
};

// Returns "same", "+1.2 %", "-0.4 points", "within" if ours is within the paper's limit, or "also
// above" if the paper's run and ours ran out of memory.
std::string DifferenceText(const Figure& figure);

std::string ReproductionText(const std::vector<Reproduction>& reproductions, size_t width);
// Returns the whole page testdata/reproduction.md.
std::string ReproductionMarkdown(const std::vector<Reproduction>& reproductions);
// Returns only its tables, by group and paper.
std::string TablesMarkdown(const std::vector<Reproduction>& reproductions);
// Returns the JSON that schemas/bench.schema.json describes.
std::string ReproductionJson(const std::vector<Reproduction>& reproductions);

// These functions round to the nearest step of the unit, halves upwards.
int64_t RatioSteps(Bytes part, Bytes whole);         // kRatio
int64_t ReductionSteps(Bytes peak, Bytes baseline);  // kReduction, negative if less
int64_t MebibyteSteps(Bytes bytes);                  // kMebibytes
int64_t GigabyteSteps(Bytes bytes);                  // kGigabytes
int64_t FactorSteps(Bytes larger, Bytes smaller);    // kFactor
int64_t FactorSteps(Cost larger, Cost smaller);      // kFactor
int64_t MillisecondSteps(Cost nanoseconds);          // kMilliseconds

// Each paper has its own file. `models` is the folder of testdata's models.
Result<Reproduction> ReproduceChen(const std::string& models);
Result<Reproduction> ReproduceFeng(const std::string& models);
Result<Reproduction> ReproduceHong(const std::string& models);
Result<Reproduction> ReproduceKusumoto(const std::string& models);
// The CPU time of Hong et al.'s algorithms, which differs from run to run.
Result<FigureTable> HongSolverTimeTable(const std::string& models);
// Tables 1 and 2 on the authors' own graphs, and the times of the algorithms on them. `graphs` is
// the folder computational_graphs of their repository (chainer_graph.h).
// The dynamic programs get the least budget, rounded up to a multiple of `step_mb`.
Result<Reproduction> ReproduceKusumotoOn(const std::string& graphs, int64_t step_mb);

}  // namespace ckplan

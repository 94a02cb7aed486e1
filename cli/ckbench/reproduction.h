// What `ckbench reproduce` finds: published figures with ours beside them.
//
// All numbers are integers in a unit's smallest step, so output is the same to the byte everywhere.
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
  kCheckpoints,   // A set of layers, by number.
};

// How the set that an algorithm finds compares with the paper's. kTie: another set of equal value.
enum class SetMatch { kSame, kTie, kDiffers };

struct Figure {
  std::string subject;   // "ResNet50": what was measured.
  std::string quantity;  // "ExactDP + MC": the algorithm, or the column of the paper.
  FigureUnit unit = FigureUnit::kRatio;
  std::optional<int64_t> ours;   // Absent: not computed; the note says why.
  std::optional<int64_t> paper;  // Absent: the paper gives no number here.
  // The paper's run found no room: `paper` is the memory of its device, which it needed more than.
  bool paper_ran_out = false;
  std::vector<int64_t> our_set;  // kCheckpoints
  std::vector<int64_t> paper_set;
  SetMatch match = SetMatch::kSame;
  int32_t note = 0;  // 1-based, into the table's notes; 0: none.

  // By how much ours is above the paper's, in 0.1 percent; for reductions in 0.1 percentage points.
  // Nothing for sets, or where one of the two is absent.
  std::optional<int64_t> Difference() const;
  // More than 2 % off, another set, or room for what the paper had no room for.
  bool NeedsExplanation() const;
};

struct FigureTable {
  std::string title;  // "Table 1, theoretical ratio"
  std::string intro;  // Setting: what is computed, and how.
  std::vector<Figure> figures;
  std::vector<std::string> notes;

  // The number of the note, added if it is new.
  int32_t Note(const std::string& text);
};

struct Reproduction {
  std::string key;    // "feng"
  std::string paper;  // "Feng, Huang: ..., 2018"
  std::vector<FigureTable> tables;
};

// "same", "+1.2 %", "-0.4 points"; "also above" of what found no room in the paper.
std::string DifferenceText(const Figure& figure);

std::string ReproductionText(const std::vector<Reproduction>& reproductions, size_t width);
// A whole page: docs/reproduction.md.
std::string ReproductionMarkdown(const std::vector<Reproduction>& reproductions);
// As schemas/bench.schema.json says.
std::string ReproductionJson(const std::vector<Reproduction>& reproductions);

// Rounded to the nearest step of the unit, halves upwards.
int64_t RatioSteps(Bytes part, Bytes whole);         // kRatio
int64_t ReductionSteps(Bytes peak, Bytes baseline);  // kReduction, negative if less
int64_t MebibyteSteps(Bytes bytes);                  // kMebibytes
int64_t GigabyteSteps(Bytes bytes);                  // kGigabytes
int64_t FactorSteps(Bytes larger, Bytes smaller);    // kFactor
int64_t FactorSteps(Cost larger, Cost smaller);      // kFactor
int64_t MillisecondSteps(Cost nanoseconds);          // kMilliseconds

// One file for each paper. `models` is the folder of testdata's models.
Result<Reproduction> ReproduceChen(const std::string& models);
Result<Reproduction> ReproduceFeng(const std::string& models);
Result<Reproduction> ReproduceHong(const std::string& models);
Result<Reproduction> ReproduceKusumoto(const std::string& models);

}  // namespace ckplan

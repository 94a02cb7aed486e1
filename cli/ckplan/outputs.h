// The files that a command line asks for: -o FILE, and --emit KIND=FILE any number of times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/ckplan/source.h"
#include "cli/common/terminal.h"
#include "lib/plan/plan.h"

namespace ckplan {

enum class OutputKind { kJson, kDot, kDivisionTree, kOnnx };

class Outputs {
 public:
  // -o is of the kind `main`. kUsage: an unknown kind, a file named twice, or more than one thing
  // for standard output. kIo: a file could not be written there.
  static Result<Outputs> Create(const Options& options, OutputKind main);

  // kUsage if an annotated model is asked for and the source is none.
  Result<Done> CheckFor(const Source& source) const;

  // All of them; the one for standard output last.
  Result<Done> Write(const Source& source, const Plan& plan, const Screen& screen) const;
  // The graph alone, as json, dot or division tree.
  Result<Done> WriteGraph(const TensorGraph& graph, const Screen& screen) const;

  bool TakesStdout() const;
  bool Has(OutputKind kind) const;
  std::vector<std::string> Files() const;     // In the order of the command line.
  std::string FileOf(OutputKind kind) const;  // Empty if there is none.

 private:
  struct Item {
    OutputKind kind = OutputKind::kJson;
    std::string path;
  };
  struct Content {
    std::string path;
    std::string text;
  };
  static Result<Done> WriteContents(const std::vector<Content>& contents, const Screen& screen);

  std::vector<Item> items_;
  std::string model_path_;
};

}  // namespace ckplan

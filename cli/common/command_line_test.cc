#include "cli/common/command_line.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

bool Says(std::string_view advice, std::string_view part) {
  return advice.find(part) != std::string_view::npos;
}

TEST_CASE("foreign words: flags of other programs say what to type here") {
  CHECK(Says(AdviceOnFlag("--batch-size"), "--batch 64"));
  CHECK(Says(AdviceOnFlag("--batch_size"), "--batch 64"));
  CHECK(Says(AdviceOnFlag("--device"), "--cost flops:rtx4090"));
  CHECK(Says(AdviceOnFlag("--optShapes"), "--input-shape"));
  CHECK(Says(AdviceOnFlag("-v"), "--version"));
  CHECK(AdviceOnFlag("--frobnicate").empty());
  CHECK(AdviceOnFlag("--").empty());
  CHECK(AdviceOnFlag("").empty());
}

TEST_CASE("foreign words: commands of other programs say what to type here") {
  CHECK(Says(AdviceOnCommand("version"), "ckplan --version"));
  CHECK(Says(AdviceOnCommand("Optimise"), "ckplan plan"));
  CHECK(Says(AdviceOnCommand("max-batch"), "ckplan fit"));
  CHECK(AdviceOnCommand("inspct").empty());
}

}  // namespace
}  // namespace ckplan

#include "cli/ckbench/all_reproductions.h"

#include <doctest/doctest.h>

#include <utility>

namespace ckplan {

const std::vector<Reproduction>& AllReproductions() {
  static const std::vector<Reproduction> all = [] {
    std::vector<Reproduction> reproductions;
    for (const auto reproduce : {ReproduceChen, ReproduceFeng, ReproduceHong, ReproduceKusumoto}) {
      Result<Reproduction> reproduction = reproduce("testdata/models");
      REQUIRE_MESSAGE(reproduction.ok(), reproduction.error().message);
      reproductions.push_back(std::move(reproduction).value());
    }
    return reproductions;
  }();
  return all;
}

const FigureTable& TableOf(std::string_view key, std::string_view title) {
  for (const Reproduction& reproduction : AllReproductions()) {
    if (reproduction.key != key) continue;
    for (const FigureTable& table : reproduction.tables) {
      if (table.title.starts_with(title)) return table;
    }
  }
  REQUIRE_MESSAGE(false, "no table of ", key, " begins with ", title);
  return AllReproductions().front().tables.front();
}

const Figure& RowOf(const FigureTable& table, std::string_view what, std::string_view how) {
  for (const Figure& figure : table.figures) {
    if (figure.subject == what && figure.quantity == how) return figure;
  }
  REQUIRE_MESSAGE(false, table.title, " has no row ", what, ", ", how);
  return table.figures.front();
}

}  // namespace ckplan

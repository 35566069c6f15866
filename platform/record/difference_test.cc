#include "record/difference.h"

#include <gtest/gtest.h>

#include <map>

#include "record/field.h"

namespace muster::record {

namespace differing {

struct Axle {
  std::string tyre;
  int spokes = 20;

  bool operator==(const Axle&) const = default;
};

struct Waggon {
  int gears = 1;
  std::string colour;
  Axle spare;
  std::optional<int> bells;
  std::vector<std::string> riders;
  std::vector<Axle> wheels;
  std::map<std::string, std::string> labels;
};

const Table& table_of(const Axle*) {
  static const Table table = record::table<Axle>(
      "Axle", {field<&Axle::tyre>("tyre", {}), field<&Axle::spokes>("spokes", {})});
  return table;
}

const Table& table_of(const Waggon*) {
  static const Table table = record::table<Waggon>(
      "Waggon", {field<&Waggon::gears>("gears", {}), field<&Waggon::colour>("colour", {}),
                 field<&Waggon::spare>("spare", {}), field<&Waggon::bells>("bells", {}),
                 field<&Waggon::riders>("riders", {}), field<&Waggon::wheels>("wheels", {}),
                 field<&Waggon::labels>("labels", {})});
  return table;
}

}  // namespace differing

using differing::Axle;
using differing::Waggon;

TEST(Differences, EqualRecordsHaveNone) {
  EXPECT_EQ(differences(Waggon{.gears = 3}, Waggon{.gears = 3}), std::vector<Difference>{});
}

TEST(Differences, AreInTheOrderOfTheRowsAndNameFieldsOfInnerRecords) {
  EXPECT_EQ(differences(Waggon{.colour = "red", .spare = {.spokes = 32}},
                        Waggon{.gears = 7, .colour = "red", .spare = {.spokes = 36}}),
            (std::vector<Difference>{{"gears", "1", "7"}, {"spare.spokes", "32", "36"}}));
}

TEST(Differences, AFieldThatIsLeftOutHasItsDefault) {
  EXPECT_EQ(differences(Waggon{}, Waggon{.spare = {.spokes = 36}}),
            (std::vector<Difference>{{"spare.spokes", "20", "36"}}));
  EXPECT_EQ(differences(Waggon{.bells = 2}, Waggon{}),
            (std::vector<Difference>{{"bells", "2", std::nullopt}}));
}

TEST(Differences, ListsOfTextsAreComparedAsWholeLists) {
  EXPECT_EQ(differences(Waggon{.riders = {"ada"}}, Waggon{.riders = {"ada", "ben"}}),
            (std::vector<Difference>{{"riders", R"(["ada"])", R"(["ada","ben"])"}}));
}

TEST(Differences, ListsOfRecordsAreComparedElementByElement) {
  EXPECT_EQ(differences(Waggon{.wheels = {{.tyre = "a"}, {.tyre = "b"}}},
                        Waggon{.wheels = {{.tyre = "c"}}}),
            (std::vector<Difference>{{"wheels[0].tyre", R"("a")", R"("c")"},
                                     {"wheels[1]", R"({"tyre":"b"})", std::nullopt}}));
}

TEST(Differences, MapsAreComparedKeyByKey) {
  EXPECT_EQ(differences(Waggon{.labels = {{"owner", "ada"}, {"shed", "1"}}},
                        Waggon{.labels = {{"owner", "ben"}, {"lock", ""}}}),
            (std::vector<Difference>{{"labels.lock", std::nullopt, R"("")"},
                                     {"labels.owner", R"("ada")", R"("ben")"},
                                     {"labels.shed", R"("1")", std::nullopt}}));
}

}  // namespace muster::record

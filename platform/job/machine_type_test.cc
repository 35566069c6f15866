#include "job/machine_type.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

TEST(UsualMachineTypes, IncludeEveryNameOfTheDocumentsWithItsGpusAndNoOtherClaim) {
  const std::map<std::string, int> gpus{
      {"Air", 0},   {"Standard", 0}, {"Pro", 0},       {"Advanced", 0},   {"GPU+", 1},
      {"P4000", 1}, {"P5000", 1},    {"P6000", 1},     {"V100", 1},       {"C1", 0},
      {"C2", 0},    {"C3", 0},       {"C4", 0},        {"C5", 0},         {"C6", 0},
      {"C7", 0},    {"C8", 0},       {"C9", 0},        {"C10", 0},        {"K80", 1},
      {"P100", 1},  {"TPU", 0},      {"p2.xlarge", 1}, {"p3.2xlarge", 1}, {"c5.xlarge", 0}};

  EXPECT_EQ(usual_machine_types().size(), gpus.size());
  for (const auto& [name, count] : gpus) {
    const auto type = find_machine_type(usual_machine_types(), name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(type->resources, (Resources{.gpus = count})) << name;
    EXPECT_EQ(type->gpu_model.empty(), count == 0) << name;
  }
}

TEST(FindMachineType, IgnoresCase) {
  EXPECT_EQ(find_machine_type(usual_machine_types(), "v100")->gpu_model, "Tesla V100");
  EXPECT_EQ(find_machine_type(usual_machine_types(), "P2.XLarge")->resources.gpus, 1);
}

TEST(FindMachineType, PrefersTheExactSpelling) {
  const MachineTypes types{{"BIG", {.gpu_model = "upper"}}, {"big", {.gpu_model = "lower"}}};

  EXPECT_EQ(find_machine_type(types, "big")->gpu_model, "lower");
  EXPECT_EQ(find_machine_type(types, "BIG")->gpu_model, "upper");
}

TEST(FindMachineType, SuggestsTheNearestNames) {
  const struct {
    const char* name;
    const char* what;
  } cases[] = {
      {"p3.xlarge",
       "there is no machine type 'p3.xlarge'; did you mean 'p2.xlarge' or 'p3.2xlarge' or "
       "'c5.xlarge'?"},
      {"P3.2XLARGES",
       "there is no machine type 'P3.2XLARGES'; did you mean 'p3.2xlarge' or "
       "'p2.xlarge'?"},
      {"A100", "there is no machine type 'A100'; did you mean 'P100' or 'V100'?"},
      {"Standart", "there is no machine type 'Standart'; did you mean 'Standard'?"},
  };
  for (const auto& [name, what] : cases) {
    const auto found = find_machine_type(usual_machine_types(), name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, base::ErrorCode::kInvalid);
    EXPECT_EQ(found.error().what, what);
    EXPECT_EQ(found.error().advice,
              "more can be added under machine_types in the server's configuration");
  }
}

TEST(FindMachineType, ListsTheKnownNamesIfNoneIsSimilar) {
  const MachineTypes few{{"large", {}}, {"small", {}}};

  const auto found = find_machine_type(few, "quantum-9000");

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().to_string(),
            "there is no machine type 'quantum-9000'\n"
            "  the known types are large, small; more can be added under machine_types in the "
            "server's configuration");
}

TEST(FindMachineType, ShortensALongName) {
  const auto found = find_machine_type(usual_machine_types(), std::string(10'000, '\xFF'));

  ASSERT_FALSE(found);
  EXPECT_LT(found.error().what.size(), 200U);
}

TEST(MachineTypesWith, OwnTypesOverrideTheUsualOnesInAnyCase) {
  const MachineTypes all = machine_types_with(
      {{"v100", {.resources = {.gpus = 8}}}, {"dgx", {.resources = {.gpus = 4}}}});

  EXPECT_EQ(find_machine_type(all, "V100")->resources.gpus, 8);
  EXPECT_EQ(find_machine_type(all, "dgx")->resources.gpus, 4);
  EXPECT_EQ(find_machine_type(all, "p2.xlarge")->resources.gpus, 1);
  EXPECT_EQ(all.size(), usual_machine_types().size() + 1);
}

TEST(FindStandIn, PrefersTheImageThenItsTagThenItsName) {
  const ImageStandIns all{{"train", {.folder = "name"}},
                          {"train:2", {.folder = "tag"}},
                          {"train:2@sha256:00ff", {.folder = "digest"}},
                          {"localhost:5000/train", {.folder = "port"}}};
  const std::map<std::string, std::string> expected{{"train", "name"},
                                                    {"train:1", "name"},
                                                    {"train@sha256:1234", "name"},
                                                    {"train:2", "tag"},
                                                    {"train:2@sha256:1234", "tag"},
                                                    {"train:2@sha256:00ff", "digest"},
                                                    {"localhost:5000/train", "port"},
                                                    {"localhost:5000/train:9", "port"}};
  for (const auto& [image, folder] : expected) {
    const ImageStandIn* found = find_stand_in(all, image);
    ASSERT_NE(found, nullptr) << image;
    EXPECT_EQ(found->folder, folder) << image;
  }
}

TEST(FindStandIn, FindsNothingForAnotherImage) {
  const ImageStandIns all{{"train", {}}, {"localhost", {}}};

  for (const char* image : {"", "trainer", "other/train", "localhost:5000/eval", "@", ":"}) {
    EXPECT_EQ(find_stand_in(all, image), nullptr) << image;
  }
}

}  // namespace
}  // namespace muster::job

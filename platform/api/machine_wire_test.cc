#include "api/machine_wire.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"

namespace muster::api {
namespace {

using job::MachineTypes;

TEST(MachineWire, IsReadBackAsItWasWritten) {
  const MachineTypes own{{"dgx",
                          {.resources = {.gpus = 8,
                                         .gpu_share_milli = 250,
                                         .gpu_memory_bytes = int64_t{8} << 30,
                                         .cpu_milli = 15'500,
                                         .memory_bytes = int64_t{64} << 30},
                           .gpu_model = "NVIDIA \"H200\""}}};
  for (const MachineTypes& types : {own, job::usual_machine_types(), MachineTypes()}) {
    const auto read = machine_types_from_json(machine_types_to_json(types));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, types);
  }
}

TEST(MachineWire, HasTheShapeThatIsDocumented) {
  EXPECT_EQ(
      machine_types_to_json({{"V100", {.resources = {.gpus = 1}, .gpu_model = "Tesla V100"}}}),
      R"({"machine_types":[{"name":"V100","gpu_model":"Tesla V100","gpus":1,"gpu_share":0,)"
      R"("gpu_memory_bytes":0,"cpus":0,"memory_bytes":0}]})");
}

TEST(MachineWire, SaysWhatIsWrong) {
  EXPECT_EQ(faults_of(machine_types_from_json("{}")),
            std::vector<std::string>{"machine_types is missing"});
  EXPECT_EQ(faults_of(machine_types_from_json(R"({"machine_types":[{"gpus":"8"}]})")),
            (std::vector<std::string>{"machine_types[0].name is missing",
                                      "machine_types[0].gpus must be a whole number, not text"}));
}

}  // namespace
}  // namespace muster::api

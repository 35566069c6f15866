#include <gtest/gtest.h>

#include "api/wire.h"
#include "base/test_faults.h"

namespace muster::api {
namespace {

using base::Texts;
using job::JobSpec;

JobSpec spec_with(job::SlurmSpec slurm) {
  return {.name = "a",
          .kind = job::Kind::kMpi,
          .slurm = std::move(slurm),
          .command = {"b"},
          .folder = "/c"};
}

TEST(SlurmWire, HasTheShapeThatIsDocumented) {
  const JobSpec spec = spec_with({.partition = "gpu,long",
                                  .account = "vision",
                                  .qos = "high",
                                  .reservation = "spring",
                                  .constraint = "a100&nvlink"});

  const std::string text = spec_to_json(spec);

  EXPECT_NE(text.find(R"("slurm":{"partition":"gpu,long","account":"vision","qos":"high",)"
                      R"("reservation":"spring","constraint":"a100&nvlink"},"command":["b"])"),
            std::string::npos)
      << text;
  EXPECT_EQ(*spec_from_json(text), spec);
}

TEST(SlurmWire, TellsEachFieldByItselfAndNothingOfWhatIsEmpty) {
  EXPECT_EQ(spec_to_json(spec_with({})).find("slurm"), std::string::npos);
  EXPECT_EQ(*spec_from_json(spec_to_json(spec_with({}))), spec_with({}));
  const std::vector<std::pair<std::string, std::string job::SlurmSpec::*>> fields{
      {"partition", &job::SlurmSpec::partition},
      {"account", &job::SlurmSpec::account},
      {"qos", &job::SlurmSpec::qos},
      {"reservation", &job::SlurmSpec::reservation},
      {"constraint", &job::SlurmSpec::constraint}};
  for (const auto& [name, member] : fields) {
    job::SlurmSpec slurm;
    slurm.*member = "x";
    const std::string text = spec_to_json(spec_with(slurm));
    EXPECT_NE(text.find(R"("slurm":{")" + name + R"(":"x"},)"), std::string::npos) << text;
    EXPECT_EQ(*spec_from_json(text), spec_with(slurm)) << text;
  }
}

TEST(SlurmWire, SaysWhatIsWrongByField) {
  EXPECT_EQ(
      base::faults_of(spec_from_json(R"({"name":"a","command":["b"],"folder":"/c",)"
                                     R"("slurm":{"partition":["gpu"],"account":1,"nodes":2}})")),
      (Texts{"slurm.partition must be text, not a list",
             "slurm.account must be text, not a whole number", "slurm.nodes is not a field"}));
}

}  // namespace
}  // namespace muster::api

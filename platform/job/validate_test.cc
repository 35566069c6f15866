#include "job/validate.h"

#include <gtest/gtest.h>

#include "job/test_specs.h"

namespace muster::job {
namespace {

std::vector<std::string> fields_of(const std::vector<Fault>& faults) {
  std::vector<std::string> fields;
  for (const Fault& fault : faults) fields.push_back(fault.field);
  return fields;
}

TEST(Validate, AcceptsAWholeSpec) {
  EXPECT_TRUE(validate(valid_mpi_spec(2)).empty());
}

TEST(Validate, ReportsEveryFaultAtOnceByField) {
  JobSpec spec = valid_mpi_spec(2);
  spec.name = "Not_A_Label";
  spec.command = {};
  spec.workers = 0;
  spec.environment = {{"1BAD", "x"}};
  spec.folder = "relative";

  EXPECT_EQ(fields_of(validate(spec)),
            (std::vector<std::string>{"name", "command", "workers", "environment", "folder"}));
}

TEST(Validate, ASingleJobTakesNoWorkers) {
  JobSpec spec = valid_mpi_spec(2);
  spec.kind = Kind::kSingle;

  EXPECT_EQ(fields_of(validate(spec)), std::vector<std::string>{"workers"});
}

TEST(Validate, RefusesBytesThatNoExecCouldPass) {
  JobSpec spec = valid_mpi_spec(2);
  spec.command.emplace_back("a\0b", 3);
  spec.environment["A"] = std::string("\0", 1);

  EXPECT_EQ(fields_of(validate(spec)), (std::vector<std::string>{"command[2]", "environment.A"}));
}

TEST(Validate, RefusesMoreThanAServerKeepsOfManyJobs) {
  constexpr size_t kMuch = 128 << 10;
  JobSpec spec = valid_mpi_spec(2);
  spec.command.emplace_back(kMuch, 'x');
  EXPECT_TRUE(validate(spec).empty());
  spec.environment["MUCH"] = std::string(kMuch, 'x');

  EXPECT_EQ(fields_of(validate(spec)), std::vector<std::string>{"command"});
}

TEST(JobName, IsADnsLabelThatLeavesRoomForTheTask) {
  for (const char* name : {"a", "dist", "resnet-50", "0", "a-1"}) EXPECT_TRUE(is_job_name(name));
  for (const char* name : {"", "-a", "a-", "A", "a_b", "a.b", "../a", "a b"}) {
    EXPECT_FALSE(is_job_name(name)) << name;
  }
  EXPECT_TRUE(is_job_name(std::string(48, 'x')));
  EXPECT_FALSE(is_job_name(std::string(49, 'x')));
}

}  // namespace
}  // namespace muster::job

#include "job/validate_slurm.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "job/test_specs.h"
#include "job/validate.h"

namespace muster::job {
namespace {

using base::Texts;

Texts slurm_faults(const SpecChange& change) {
  JobSpec spec{.name = "a", .kind = Kind::kMpi, .command = {"mpirun"}, .workers = 2, .folder = "/"};
  change(spec);
  return base::texts_of(validate(spec));
}

TEST(ValidateSlurm, TakesAllThatCanBeSaid) {
  EXPECT_EQ(slurm_faults([](JobSpec& spec) {
              spec.slurm = {.partition = "gpu,long-2.a",
                            .account = "vision_lab@site",
                            .qos = "high+night",
                            .reservation = "maint:1,root_3",
                            .constraint = "[(a100&nvlink)|h100*2],!old"};
              spec.launch = LaunchBy::kSrun;
            }),
            Texts{});
}

// What breaks out of a line, an argument or a quotation is in none of them.
TEST(ValidateSlurm, NoFieldHoldsWhatALineOrAShellWouldRead) {
  for (const std::string& bad :
       {std::string("a b"), std::string("a\n#SBATCH --uid=0"), std::string("a'b"),
        std::string("a\"b"), std::string("a#b"), std::string("a\\b"), std::string("$(id)"),
        std::string("a;b"), std::string("a`b"), std::string("-p"), std::string("a\0b", 3),
        std::string("\xC3\xA4"), std::string(1025, 'a')}) {
    const std::vector<std::pair<std::string, std::string SlurmSpec::*>> fields{
        {"slurm.partition ", &SlurmSpec::partition},
        {"slurm.account ", &SlurmSpec::account},
        {"slurm.qos ", &SlurmSpec::qos},
        {"slurm.reservation ", &SlurmSpec::reservation},
        {"slurm.constraint ", &SlurmSpec::constraint}};
    for (const auto& [field, member] : fields) {
      const Texts faults = slurm_faults([&, m = member](JobSpec& spec) { spec.slurm.*m = bad; });
      ASSERT_EQ(faults.size(), 1U) << field << bad;
      EXPECT_TRUE(faults.front().starts_with(field + in_quotes(bad))) << faults.front();
    }
  }
}

TEST(ValidateSlurm, SaysAllThatIsWrongAtOnce) {
  EXPECT_EQ(
      slurm_faults([](JobSpec& spec) {
        spec.slurm = {.partition = "gpu,,long",
                      .account = "a,b",
                      .qos = ",",
                      .reservation = "a|b",
                      .constraint = "a100 & nvlink"};
      }),
      (Texts{"slurm.partition 'gpu,,long' is neither the name of a partition nor several with "
             "commas between them; a name has letters, digits and _-.+:@",
             "slurm.account 'a,b' is not the name of an account; a name has letters, digits "
             "and _-.+:@",
             "slurm.qos ',' is neither the name of a QOS nor several with commas between them; "
             "a name has letters, digits and _-.+:@",
             "slurm.reservation 'a|b' is neither the name of a reservation nor several with "
             "commas between them; a name has letters, digits and _-.+:@",
             "slurm.constraint 'a100 & nvlink' is not made of features of nodes, as a100&nvlink "
             "is; it has letters, digits, _-.+:@ and Slurm's &|*,()[]!=/"}));
}

TEST(ValidateSlurm, SrunStartsTheRanksOfMpiJobsAlone) {
  for (const Kind kind : {Kind::kSingle, Kind::kTorch, Kind::kGrpc}) {
    EXPECT_EQ(slurm_faults([&](JobSpec& spec) {
                spec.kind = kind;
                spec.workers = 0;
                spec.launch = LaunchBy::kSrun;
              }),
              Texts{"launch only an mpi job has a launcher that starts ranks; leave it out"});
  }
}

TEST(ValidateSlurm, ItsTextsCountAmongThoseOfTheJob) {
  const Texts faults = slurm_faults([](JobSpec& spec) {
    spec.environment["A"] = std::string((256 << 10) - 1000, 'a');
    spec.slurm.constraint = std::string(1000, 'a');
  });
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NE(faults.front().find("bytes long together with the environment"), std::string::npos);
}

}  // namespace
}  // namespace muster::job

// muster doctor: its command line and its output.
#include <gtest/gtest.h>

#include "cli/server/server.h"
#include "cli/test_call.h"

namespace muster::cli::server {

namespace {

using job::Diagnosis;
using Verdict = job::Finding::Verdict;

std::vector<Diagnosis> found() {
  return {{.engine = "process",
           .findings = {{"bubblewrap", Verdict::kFine, "0.8.0", ""},
                        {"GPUs", Verdict::kNote, "none", ""},
                        {"remote shells", Verdict::kLacks, "no sshd", "apt install it"}}},
          {.engine = "slurm", .findings = {{"controller", Verdict::kFails, "is down", "wake it"}}}};
}

TEST(DoctorPage, HasASectionForEachEngineAndALineForEachFinding) {
  EXPECT_EQ(doctor_page(found(), "slurm", false),
            "process: can run jobs\n"
            "  ok     bubblewrap     0.8.0\n"
            "  note   GPUs           none\n"
            "  lacks  remote shells  no sshd\n"
            "                        -> apt install it\n"
            "\n"
            "slurm (chosen): cannot run jobs\n"
            "  fails  controller  is down\n"
            "                     -> wake it\n");
}

TEST(DoctorPage, RepeatsWordsByColours) {
  std::string page = doctor_page(found(), "slurm", true);
  EXPECT_NE(page.find("\x1b[1;31mfails"), std::string::npos);
  for (size_t at = 0; (at = page.find('\x1b')) != std::string::npos;) {
    page.erase(at, page.find('m', at) + 1 - at);
  }
  EXPECT_EQ(page, doctor_page(found(), "slurm", false));
}

TEST(DoctorJson, ContainsAllFindings) {
  EXPECT_EQ(doctor_json({found()[1]}, "slurm", "1.2"),
            R"({"version":"1.2","chosen":"slurm","engines":[{"engine":"slurm","can_run":false,)"
            R"("findings":[{"subject":"controller","verdict":"fails","text":"is down",)"
            R"("advice":"wake it"}]}]})");
}

TEST(Doctor, ExitsWithZeroIfTheChosenEngineCanRunJobs) {
  EXPECT_TRUE(is_well(found(), "process"));
  EXPECT_FALSE(is_well(found(), "slurm"));
  EXPECT_FALSE(is_well(found(), "container"));
  EXPECT_FALSE(is_well({}, "process"));
}

TEST(Doctor, ChecksAllEnginesUnlessAnEngineIsNamed) {
  EXPECT_FALSE(parsed<DoctorCommand>({"doctor"}).only_chosen);
  const auto one = parsed<DoctorCommand>({"doctor", "--engine", "slurm", "-o", "json"});
  EXPECT_TRUE(one.only_chosen);
  EXPECT_EQ(one.output, Output::kJson);
  ASSERT_EQ(one.source.settings.size(), 1U);
  EXPECT_EQ(one.source.settings[0].text, "slurm");
  EXPECT_NE(refusal({"doctor", "--engine", "slrm"}).find("did you mean 'slurm'?"),
            std::string::npos);
}

}  // namespace

}  // namespace muster::cli::server

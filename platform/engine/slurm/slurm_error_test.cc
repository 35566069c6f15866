#include "engine/slurm/slurm_error.h"

#include <gtest/gtest.h>

namespace muster::engine::slurm {
namespace {

using base::Error;
using base::ErrorCode;

Submission of_team() {
  Submission submission;
  submission.partition = "nonesuch";
  submission.account = "team";
  submission.constraint = "h100";
  return submission;
}

constexpr const char* kFailed = "sbatch: error: Batch job submission failed: ";

TEST(RefusalOf, DistinguishesUnreachableLostAndRefused) {
  struct Row {
    const char* output;
    ErrorCode code;
  };
  const std::vector<Row> rows{
      {"Unable to contact slurm controller (connect failure)", ErrorCode::kUnavailable},
      {"Slurm backup controller in standby mode", ErrorCode::kUnavailable},
      {"Protocol authentication error", ErrorCode::kUnavailable},
      {"Socket timed out on send/recv operation", ErrorCode::kTimeout},
      {"Zero Bytes were transmitted or received", ErrorCode::kTimeout},
      {"Unable to contact slurm controller (receive failure)", ErrorCode::kTimeout},
      {"Unexpected message received", ErrorCode::kTimeout},
      {"Slurm temporarily unable to accept job, sleeping and retrying", ErrorCode::kExhausted},
      {"Resource temporarily unavailable", ErrorCode::kExhausted},
      {"Invalid partition name specified", ErrorCode::kRefused},
      {"Invalid account or account/partition combination specified", ErrorCode::kRefused},
      {"Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
       ErrorCode::kRefused},
      {"Something that nobody has thought of", ErrorCode::kRefused},
  };
  for (const Row& row : rows) {
    const Error error = refusal_of(std::string(kFailed) + row.output + "\n", of_team());
    EXPECT_EQ(error.code, row.code) << row.output;
    EXPECT_NE(error.what.find(row.output), std::string::npos) << error.what;
  }
}

TEST(RefusalOf, ALimitOfWaitingJobsIsTemporary) {
  const Error error = refusal_of(
      "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
      "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit "
      "limit, user's size and/or time limits)\n",
      of_team());
  EXPECT_EQ(error.code, ErrorCode::kExhausted);
}

TEST(RefusalOf, NamesTheValueAndTheOptionThatChangesIt) {
  const Error partition = refusal_of(
      "sbatch: error: invalid partition specified: nonesuch\n"
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
      of_team());
  EXPECT_EQ(partition.what,
            "Slurm refuses the job: invalid partition specified: nonesuch; Invalid partition name "
            "specified; its partition is 'nonesuch'");
  EXPECT_EQ(partition.advice, "choose another --slurm-partition; sinfo lists the partitions");

  const Error account = refusal_of(
      std::string(kFailed) + "Invalid account or account/partition combination specified",
      of_team());
  EXPECT_NE(account.what.find("its account is 'team'"), std::string::npos) << account.what;
  EXPECT_NE(account.advice.find("--slurm-account"), std::string::npos);

  const Error qos = refusal_of(std::string(kFailed) + "Invalid qos specification", of_team());
  EXPECT_NE(qos.what.find("its QOS is the default, because the job names none"), std::string::npos);

  const Error feature =
      refusal_of(std::string(kFailed) + "Invalid feature specification", of_team());
  EXPECT_NE(feature.what.find("its constraint is 'h100'"), std::string::npos);
}

TEST(RefusalOf, ATooLargeRequestAdvisesARemedy) {
  const Error error = refusal_of(
      "sbatch: error: Memory specification can not be satisfied\n"
      "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
      of_team());
  EXPECT_EQ(error.what,
            "Slurm refuses the job: Memory specification can not be satisfied; Requested node "
            "configuration is not available");
  EXPECT_NE(error.advice.find("--memory"), std::string::npos) << error.advice;
}

TEST(RefusalOf, AMissingConfigurationIsUnreachable) {
  const Error error = refusal_of(
      "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
      "sbatch: error: fetch_config: DNS SRV lookup failed\n"
      "sbatch: fatal: Could not establish a configuration source\n",
      of_team());
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_NE(error.advice.find("SLURM_CONF"), std::string::npos);
}

TEST(FailureOf, OnlyADenialIsARefusal) {
  EXPECT_EQ(
      failure_of("x", "scancel: error: Kill job error on job id 1: Access/permission denied").code,
      ErrorCode::kRefused);
  const Error error =
      failure_of("Slurm's queue cannot be read",
                 "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.what,
            "Slurm's queue cannot be read: Unable to contact slurm controller (connect failure)");
}

TEST(SentenceOf, DropsProgramNamesWarningsAndRepetitions) {
  EXPECT_EQ(sentence_of("srun: Warning: can't honor --ntasks-per-node\nsrun: error: No.\r\n"
                        "srun: error: No.\n\n"),
            "No.");
  EXPECT_EQ(sentence_of("srun: Warning: only this\n"), "only this");
  EXPECT_EQ(sentence_of("a sentence: error: within"), "a sentence: error: within");
  EXPECT_EQ(sentence_of(""), "");
  EXPECT_LT(sentence_of(std::string(100'000, 'x')).size(), 2000u);
  EXPECT_EQ(sentence_of("caf\xe9"), "caf\uFFFD");
}

}  // namespace
}  // namespace muster::engine::slurm

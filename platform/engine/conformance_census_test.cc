// The facts about MPI that a task reports: the MPI of its launcher, and the ranks. The programs
// here only imitate an MPI; conformance_mpi_test.cc uses real ones.
#include "engine/conformance.h"

namespace muster::engine {
namespace {

class Census : public Conformance {
 protected:
  std::string generated(const std::string& task = "main") const {
    return bench_->engine().generated_folder(gang_, task, sandbox());
  }

  /// A script whose mpirun prints that version, in a task that examines it.
  TaskPlan with_mpirun(const std::string& version, const std::string& text) {
    EXPECT_TRUE(base::write_file(scratch_ / "mpirun", "#!/bin/sh\necho '" + version + "'\n", 0755));
    TaskPlan plan = script(text);
    plan.environment["PATH"] = scratch_.string() + ":/usr/bin:/bin";
    plan.files = {{.path = "hostfile", .content = "a slots=2\n"},
                  {.path = "hostfile.intel", .content = "a:2\n"}};
    plan.mpi = launch::MpiChoice{
        .variants = {
            {job::MpiKind::kOpenMpi, {.environment = {{"WHOSE", "Open MPI's"}}}},
            {job::MpiKind::kIntel,
             {.environment = {{"WHOSE", "Intel's"}}, .files = {{"hostfile", "hostfile.intel"}}}}}};
    return plan;
  }
};

TEST_P(Census, TheMpiIsDetectedBeforeTheProgramStartsAndDeterminesItsFiles) {
  const TaskPlan plan = with_mpirun("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 1",
                                    "echo $WHOSE; cat " + generated() + "/hostfile");
  ASSERT_TRUE(bench_->start(gang_, {plan}));

  EXPECT_EQ(bench_->engine().mpi_of(gang_, "main"), "Intel MPI 2021.13");
  EXPECT_EQ(bench_->wait_for_end("main").status.shell_code(), 0);
  EXPECT_EQ(log_of("main"), "Intel's\na:2\n");
}

TEST_P(Census, AnUnknownMpiIsQuotedAndTreatedAsOpenMpi) {
  run(with_mpirun("srun 22.05", "echo $WHOSE; cat " + generated() + "/hostfile"));

  EXPECT_EQ(bench_->engine().mpi_of(gang_, "main"), "");
  EXPECT_EQ(log_of("main"), "Open MPI's\na slots=2\n");
  EXPECT_NE(log_of("main", job::LogStream::kNotice).find("printed 'srun 22.05'"),
            std::string::npos);
}

TEST_P(Census, WithoutAnMpirunNothingIsReported) {
  TaskPlan plan = with_mpirun("unused", "echo ${WHOSE-nobody}");
  plan.mpi->program = "no-such-mpirun";
  run(plan);

  EXPECT_EQ(bench_->engine().mpi_of(gang_, "main"), "");
  EXPECT_EQ(log_of("main"), "nobody\n");
  EXPECT_EQ(log_of("main", job::LogStream::kNotice), "");
}

TEST_P(Census, RanksThatRegisterAreReportedAtOnce) {
  TaskPlan plan = script("echo 4 > " + generated() + "/ranks/2; exec sleep " + marker_);
  plan.folders = {"ranks"};
  plan.takes_ranks = true;
  ASSERT_TRUE(bench_->start(gang_, {plan}));

  bench_->wait_until([&] { return bench_->rank_reports_of("main") > 0; });

  const auto ranks = bench_->engine().ranks(gang_, {"main"});
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].rank, 2);
  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
  bench_->wait_for_end("main");
}

TEST_P(Census, RanksOfAProxyAreSignedIn) {
  const std::string rank_file = generated() + "/ranks/1";
  TaskPlan plan = script(
      "cp /bin/sh hydra_pmi_proxy\n"
      "export PMI_RANK=1 PMI_SIZE=4\n"
      "./hydra_pmi_proxy -c 'sh -c \"until [ -s " +
      rank_file + " ]; do sleep 0.02; done\"; exit 0'");
  plan.folders = {"ranks"};
  plan.takes_ranks = true;

  EXPECT_EQ(run(plan).status.shell_code(), 0);

  const auto ranks = bench_->engine().ranks(gang_, {"main"});
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].rank, 1);
  EXPECT_EQ(ranks[0].world_size, 4);
}

INSTANTIATE_TEST_SUITE_P(Engines, Census, testing::ValuesIn(grounds()), ground_name);

}  // namespace
}  // namespace muster::engine

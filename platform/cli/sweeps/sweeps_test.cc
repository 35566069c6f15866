#include "cli/sweeps/sweeps.h"

#include <gtest/gtest.h>

#include "cli/cli_fixture.h"
#include "cli/common/sweep_view.h"
#include "cli/test_call.h"

namespace muster::cli::sweeps {
namespace {

using sweep::SweepSpec;

constexpr const char* kSweepFile = R"(name: lr
command: [./train, --lr, "{lr}"]
resources: {gpus: 1}
sweep:
  method: asha
  metric: accuracy
  max_trials: 16
  max_steps: 40
  parameters:
    lr: log:1e-4..1e-1
    batch: [16, 32, 64]
    layers: {low: 1, high: 4, integer: true}
)";

job::JobSpec sweep_defaults() {
  job::JobSpec spec;
  spec.folder = "/home/ada";
  return spec;
}

std::vector<std::string> faults_in(const base::Error& error) {
  std::vector<std::string> faults;
  for (const base::Fault& fault : error.faults) {
    faults.push_back(std::to_string(fault.line) + " " + fault.field);
  }
  return faults;
}

TEST(SweepFile, IsAJobFileWithASection) {
  const auto spec = parse_sweep_file(kSweepFile, "sweep.yaml", sweep_defaults());
  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->spec.job.name, "lr");
  EXPECT_EQ(spec->spec.job.resources.gpus, 1);
  EXPECT_EQ(spec->spec.method, sweep::Method::kAsha);
  EXPECT_EQ(spec->spec.max_steps, 40);
  EXPECT_EQ(spec->spec.parameters.at("lr"),
            (sweep::Parameter{.low = 1e-4, .high = 0.1, .log = true}));
  EXPECT_EQ(spec->spec.parameters.at("batch"), (sweep::Parameter{.values = {"16", "32", "64"}}));
  EXPECT_EQ(spec->spec.parameters.at("layers"),
            (sweep::Parameter{.low = 1, .high = 4, .integer = true}));
}

TEST(SweepFile, IsOverriddenByFlags) {
  const auto spec = parse_sweep_file(kSweepFile, "sweep.yaml", sweep_defaults(),
                                     {{"max_trials", "4"}, {"parameters.lr", "0.1,0.2"}}, "other",
                                     {"resources.gpus=2"});
  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->spec.job.name, "other");
  EXPECT_EQ(spec->spec.job.resources.gpus, 2);
  EXPECT_EQ(spec->spec.max_trials, 4);
  EXPECT_EQ(spec->spec.parameters.at("lr").values, (std::vector<std::string>{"0.1", "0.2"}));
  EXPECT_EQ(spec->spec.parameters.size(), 3U);
}

TEST(SweepFile, MayHaveAWorkspace) {
  const auto file =
      parse_sweep_file("workspace: {from: src, ignore: [\"*.pt\"]}\n" + std::string(kSweepFile),
                       "sweep.yaml", sweep_defaults());
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_TRUE(file->workspace);
  EXPECT_EQ(file->workspace->from, "src");
  EXPECT_EQ(file->workspace->ignore, (std::vector<std::string>{"*.pt"}));
}

TEST(SweepFile, ReportsEveryFaultWithItsLine) {
  const auto spec = parse_sweep_file(R"(name: lr
command: ./train
workers: three
sweep:
  method: bayes
  max_trials: 16
  parameters:
    lr: log:oops
    b: {values: [1], low: 2}
)",
                                     "sweep.yaml", sweep_defaults());
  ASSERT_FALSE(spec);
  EXPECT_EQ(faults_in(spec.error()),
            (std::vector<std::string>{"3 workers", "5 sweep.method", "8 sweep.parameters.lr"}));
}

TEST(SweepFile, WithoutTheSectionIsRefused) {
  const auto spec = parse_sweep_file("name: lr\ncommand: ./train\n", "job.yaml", sweep_defaults());
  ASSERT_FALSE(spec);
  EXPECT_EQ(faults_in(spec.error()).front(), "1 sweep");
}

const Words kGridFlags{"--param", "lr=0.1,0.2", "--method", "grid", "--metric", "loss"};

TEST(SweepCreate, TakesTrialsOfAnyKind) {
  Words words{"sweep", "create", "lr", "--kind", "torch", "--workers", "2"};
  const auto command = parsed<SweepCreateCommand>(with_program(words, kGridFlags));
  EXPECT_EQ(command.spec.job.kind, job::Kind::kTorch);
  EXPECT_EQ(command.spec.job.workers, 2);
}

TEST(SweepCreate, RefusesFlagsOfOtherKinds) {
  const std::string text =
      refusal(with_program({"sweep", "create", "lr", "--workers", "2"}, kGridFlags));
  EXPECT_NE(text.find("--workers is not a flag of 'single' jobs; --kind sets another kind"),
            std::string::npos)
      << text;
}

TEST(SweepCreate, ReportsTheFaultsOfAllParameters) {
  const std::string text = refusal(
      with_program({"sweep", "create", "s", "--param", "lr=1..0", "--param", "b=", "--param",
                    "c d=1,2", "--param", "x=log:0..1", "--param", "y=1,2", "--param", "y=3,4"},
                   {"--metric", "loss", "--max-trials", "2"}));
  for (const char* part : {"--param: 'lr=1..0': the upper end of a range is below its lower end",
                           "--param: 'b=': '' is not a list A,B,C",
                           "--param: 'c d=1,2': 'c d' is not a parameter name",
                           "--param: 'x=log:0..1': a logarithmic range begins above 0",
                           "--param: 'y' is given twice; give its values in one list"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nshould say: " << part;
  }
  EXPECT_TRUE(text.starts_with("5 errors")) << text;
}

TEST(SweepKeys, ReportFaultsByKey) {
  SweepSpec spec;
  const auto faults = set_sweep_keys({{"max_trials", "many"}, {"goal", "min"}}, spec);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().field, "max_trials");
  EXPECT_EQ(spec.goal, sweep::Goal::kMinimize);
}

sweep::Sweep shown_sweep() {
  const auto spec = parse_sweep_file(kSweepFile, "sweep.yaml", sweep_defaults());
  const sweep::SweepRecord record{.id = "s1",
                                  .owner = "ada",
                                  .created = base::Time(std::chrono::seconds(0)),
                                  .spec = spec->spec};
  sweep::SweepProgress progress;
  progress.search.trials = {{.number = 1,
                             .values = {{"batch", "16"}, {"layers", "2"}, {"lr", "0.01"}},
                             .phase = sweep::TrialPhase::kPaused,
                             .rungs = {{0.5}},
                             .best = 0.5,
                             .last = 0.5,
                             .steps = 2},
                            {.number = 2,
                             .values = {{"batch", "32"}, {"layers", "1"}, {"lr", "0.001"}},
                             .phase = sweep::TrialPhase::kCompleted,
                             .rung = 2,
                             .rungs = {{0.6}, {0.8}, {0.9}},
                             .best = 0.92,
                             .last = 0.9,
                             .steps = 40},
                            {.number = 3,
                             .values = {{"batch", "64"}, {"layers", "1"}, {"lr", "0.1"}},
                             .phase = sweep::TrialPhase::kFailed,
                             .fault = "reported no value of 'accuracy'"}};
  return sweep_of(record, progress.search, progress.ended);
}

TEST(SweepPage, ShowsTrialsBestFirst) {
  EXPECT_EQ(sweep_page(shown_sweep(), base::Time(std::chrono::seconds(90))),
            R"(NAME       lr
KIND       sweep of single jobs
METHOD     asha
METRIC     maximize accuracy
RUNGS      2, 10, 40 steps
PHASE      Running
TRIALS     3 of 16 started, 1 paused, 1 completed, 1 failed
BEST       0.92 (lr-2)
PROJECT    default
OWNER      ada
ID         s1
SUBMITTED  1970-01-01T00:00:00Z (1m30s ago)

TRIAL  BEST  LAST  RUNG  STEPS  batch  layers     lr  PHASE
lr-2   0.92   0.9   3/3     40     32       1  0.001  Completed
lr-1    0.5   0.5   1/3      2     16       2   0.01  Paused
lr-3      -     -   0/3      0     64       1    0.1  Failed: reported no value of 'accuracy'
)");
}

TEST(SweepTable, ShowsOneRowForASweep) {
  EXPECT_EQ(sweep_table({shown_sweep().summary}, base::Time(std::chrono::seconds(90))),
            "NAME  PROJECT  METHOD  PHASE    TRIALS  METRIC    BEST  TRIAL    AGE\n"
            "lr    default  asha    Running    3/16  accuracy  0.92  lr-2   1m30s\n");
}

TEST(SweepStopText, DiffersForASweepThatHasEnded) {
  sweep::SweepSummary summary = shown_sweep().summary;
  summary.phase = sweep::SweepPhase::kStopped;
  EXPECT_EQ(sweep_stop_text(summary),
            "stopping lr: 3 of 16 started, 1 paused, 1 completed, 1 failed\n");
  summary.phase = sweep::SweepPhase::kSucceeded;
  EXPECT_EQ(sweep_stop_text(summary),
            "lr has ended: Succeeded; 3 of 16 started, 1 paused, 1 completed, 1 failed; best "
            "accuracy: 0.92 (lr-2)\n");
}

TEST(RerunCommand, RunsTheTrialToItsEnd) {
  const sweep::Sweep sweep = shown_sweep();
  EXPECT_EQ(rerun_command(sweep, sweep.trials.front()),
            "muster rerun lr-2 --env MUSTER_SWEEP_MAX_STEPS=40 --env MUSTER_SWEEP_RUNG=2 --env "
            "MUSTER_SWEEP_RUNGS=3 --env MUSTER_SWEEP_STEPS=40");
}

TEST(PlanPage, ShowsTheCostAndTheFirstTrials) {
  const auto spec = parse_sweep_file(kSweepFile, "sweep.yaml", sweep_defaults(),
                                     {{"max_trials", "30"}}, "", {"scheduling.time_limit=1h"});
  ASSERT_TRUE(spec) << spec.error().to_string();
  const std::string page = plan_page(spec->spec, sweep::plan_of(spec->spec));
  EXPECT_NE(page.find("TRIALS     30, at most 4 at the same time\n"), std::string::npos) << page;
  EXPECT_NE(page.find("STEPS      at most 1200, about 146 expected\n"), std::string::npos) << page;
  EXPECT_NE(page.find("GPU HOURS  at most 30\n"), std::string::npos) << page;
  EXPECT_NE(page.find("and 10 more\n"), std::string::npos) << page;
}

}  // namespace
}  // namespace muster::cli::sweeps

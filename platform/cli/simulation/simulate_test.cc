// muster simulate: its command lines and its output.
#include "cli/simulation/simulate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "cli/cli_fixture.h"
#include "cli/test_call.h"

namespace muster::cli::simulation {

namespace {

template <class What>
What parsed_simulation(const Words& words) {
  return std::get<What>(parsed<SimulateCommand>(words).what);
}

TEST(SimulateFlags, TraceFlagsSetTheirFields) {
  const auto trace = parsed_simulation<SimulateTrace>({"simulate",
                                                       "--trace",
                                                       "jobs.csv",
                                                       "--nodes",
                                                       "4",
                                                       "--gpus-per-node",
                                                       "2",
                                                       "--cpus-per-node",
                                                       "16",
                                                       "--memory-per-node",
                                                       "64G",
                                                       "--project",
                                                       "a=1.5",
                                                       "--project",
                                                       "b=2:0.5",
                                                       "--policy",
                                                       "backfill",
                                                       "--checkpoint",
                                                       "--per-project",
                                                       "--chart",
                                                       "c.svg"});

  EXPECT_EQ(trace.file, "jobs.csv");
  EXPECT_EQ(trace.setup.nodes, 4);
  EXPECT_EQ(trace.setup.gpus_per_node, 2);
  EXPECT_EQ(trace.setup.cpu_milli_per_node, 16'000);
  EXPECT_EQ(trace.setup.memory_per_node, 64LL << 30);
  EXPECT_EQ(trace.setup.projects,
            (std::vector<simulate::TraceProject>{{"a", 1500, 1}, {"b", 2000, 0.5}}));
  EXPECT_EQ(trace.setup.policy, schedule::Policy::kBackfill);
  EXPECT_TRUE(trace.setup.checkpoint);
  EXPECT_TRUE(trace.per_project);
  EXPECT_EQ(trace.chart_file, "c.svg");
}

TEST(SimulateFlags, OpenbTakesTwoFiles) {
  const auto openb =
      parsed_simulation<SimulateOpenb>({"simulate", "--openb", "nodes.csv", "pods.csv"});
  EXPECT_EQ(openb.nodes_file, "nodes.csv");
  EXPECT_EQ(openb.pods_file, "pods.csv");
  EXPECT_NE(refusal({"simulate", "--openb", "nodes.csv"}).find("needs two files"),
            std::string::npos);
}

TEST(SimulateFlags, RequireExactlyOneExperiment) {
  EXPECT_NE(refusal({"simulate"}).find("nothing to simulate"), std::string::npos);
  EXPECT_NE(refusal({"simulate", "--scenarios", "a", "--trace", "b", "--nodes", "1"})
                .find("cannot be used with --scenarios"),
            std::string::npos);
  EXPECT_NE(refusal({"simulate", "--scenarios", "a", "b"}).find("'b' is unexpected"),
            std::string::npos);
}

TEST(SimulateFlags, RefuseAClusterWithoutNodesBeforeTheTraceIsRead) {
  EXPECT_NE(refusal({"simulate", "--trace", "jobs.csv", "--nodes", "0"}).find("--nodes"),
            std::string::npos);
}

TEST(SimulateFlags, NameEveryInvalidFlag) {
  const std::string text =
      refusal({"simulate", "--trace", "t", "--project", "a", "--project", "b=many", "--project",
               "c=1:-2", "--policy", "fiar", "--cpus-per-node", "x", "--packing", "pack"});

  for (const char* fault :
       {"--packing: can be used only with --openb", "--nodes: is missing",
        "'a' is not written NAME=GPUS", "'b=many' is not written NAME=GPUS",
        "'c=1:-2' has no weight", "'fiar' is invalid: expected one of fair, backfill, fifo",
        "--cpus-per-node"})
    EXPECT_NE(text.find(fault), std::string::npos) << fault << "\n" << text;
}

class Simulate : public Cli {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
};

const std::string kScenario =
    "## allocate/a_test.go\n- **one fits**\n  nodes: n:1G \u00b7 queues: q(des=1)\n"
    "  jobs: a[q,train,1G x1]{1xPending}\n  expect: a=";

TEST_F(Simulate, NamesTheScenariosWithUnexpectedResults) {
  const Outcome right =
      muster({"simulate", "--scenarios", file("a.md", kScenario + "Binding@n\n")});
  const Outcome wrong = muster({"simulate", "--scenarios", file("b.md", kScenario + "Pending\n")});

  EXPECT_EQ(right.out, "ok one fits\n1 of 1\n");
  EXPECT_EQ(right.code, 0);
  EXPECT_EQ(wrong.out, "differs one fits: expected a=Pending got a=Binding@n\n0 of 1\n");
  EXPECT_EQ(wrong.code, 1);
}

const std::string kTrace = "submit_s,duration_s,gpus,project\n0,100,2,a\n10,50,2,b\n0,10,64,a\n";

TEST_F(Simulate, PrintsTheResultOfATraceAndDrawsIt) {
  const std::string chart = (folder_ / "queue.svg").string();
  const Outcome outcome =
      muster({"simulate", "--trace", file("t.csv", kTrace), "--nodes", "1", "--gpus-per-node", "2",
              "--policy", "fifo", "--per-project", "--chart", chart});

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.out.substr(0, outcome.out.find("\n1 job could")),
      "2 jobs on 1 node of 2 GPUs, policy fifo\n"
      "\n"
      "            MEAN    P50    P90    P99\n"
      "waiting      45s    0ms  1m30s  1m30s\n"
      "completion    2m  1m40s  2m20s  2m20s\n"
      "\n"
      "utilisation  100.0 %\n"
      "makespan     2m30s\n"
      "preemptions  0\n"
      "moves        0\n"
      "\n"
      "PROJECT  QUOTA  JOBS  WAITING MEAN    P90  COMPLETION MEAN    P90  GPU HOURS  "
      "PREEMPTIONS\n"
      "a            1     1           0ms    0ms            1m40s  1m40s        0.1            "
      "0\n"
      "b            1     1         1m30s  1m30s            2m20s  2m20s        0.0            "
      "0\n");
  EXPECT_NE(outcome.out.find("1 job could never run on these nodes:\n  line 4: "),
            std::string::npos);
  std::ifstream drawn(chart);
  const std::string svg{std::istreambuf_iterator<char>(drawn), {}};
  EXPECT_NE(svg.find("1 node of 2 GPUs, policy fifo"), std::string::npos);
}

TEST_F(Simulate, ReportsEveryFaultOfATraceWithFileAndLine) {
  const Outcome outcome = muster(
      {"simulate", "--trace", file("t.csv", "submit_s,duration_s,gpus,project\n0,x,1,a\n0,1,-1,\n"),
       "--nodes", "1"});

  EXPECT_EQ(outcome.code, 2);
  for (const char* part : {"t.csv", "line 2: duration_s", "line 3: gpus", "line 3: project"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
}

TEST_F(Simulate, NamesAMissingFile) {
  const Outcome outcome = muster({"simulate", "--scenarios", "/nowhere/s.md"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("/nowhere/s.md"), std::string::npos);
}

}  // namespace

}  // namespace muster::cli::simulation

// Command lines on projects, nodes, the queue and the server, as typed commands.
#include <gtest/gtest.h>

#include "cli/cluster/cluster.h"
#include "cli/jobs/jobs.h"
#include "cli/projects/projects.h"
#include "cli/server/server.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

using std::chrono::milliseconds;

TEST(ProjectCreate, EveryFlagSetsItsField) {
  const auto command = parsed<projects::ProjectChangeCommand>({"project",   "create",
                                                               "team-a",    "--gpus",
                                                               "2.5",       "--cpus",
                                                               "unlimited", "--memory",
                                                               "64G",       "--limit",
                                                               "4",         "--limit-cpus",
                                                               "500m",      "--limit-memory",
                                                               "unlimited", "--weight",
                                                               "0.5",       "--parent",
                                                               "research",  "--priority",
                                                               "200",       "--reclaim-min-runtime",
                                                               "5m",        "--preempt-min-runtime",
                                                               "1m",        "-o",
                                                               "json"});

  EXPECT_EQ(command.what, projects::ProjectChangeCommand::What::kCreate);
  EXPECT_EQ(command.name, "team-a");
  const api::ProjectChange& change = command.change;
  using Amount = api::ShareChange::Amount;
  EXPECT_EQ(change.quota.deserved.gpu_milli, Amount(2500));
  EXPECT_EQ(change.quota.deserved.cpu_milli, Amount(std::in_place, std::nullopt));
  EXPECT_EQ(change.quota.deserved.memory_bytes, Amount(64LL << 30));
  EXPECT_EQ(change.quota.limit.gpu_milli, Amount(4000));
  EXPECT_EQ(change.quota.limit.cpu_milli, Amount(500));
  EXPECT_EQ(change.quota.limit.memory_bytes, Amount(std::in_place, std::nullopt));
  EXPECT_EQ(change.quota.weight, 0.5);
  EXPECT_EQ(change.parent, "research");
  EXPECT_EQ(change.priority, 200);
  EXPECT_EQ(change.takes_the_rest, false);
  EXPECT_EQ(change.reclaim_min_runtime, std::chrono::minutes(5));
  EXPECT_EQ(change.preempt_min_runtime, std::chrono::minutes(1));
  EXPECT_EQ(command.output, Output::kJson);
}

TEST(ProjectSet, ChangesOnlyTheGivenFields) {
  api::ProjectChange expected;
  expected.quota.limit.gpu_milli = 3000;
  EXPECT_EQ(parsed<projects::ProjectChangeCommand>({"project", "set", "a", "--limit", "3"}).change,
            expected);
  EXPECT_EQ(
      parsed<projects::ProjectChangeCommand>({"project", "set", "a", "--limit-gpus", "3"}).change,
      expected);
  EXPECT_EQ(
      parsed<projects::ProjectChangeCommand>({"project", "set", "a", "--parent", ""}).change.parent,
      "");
}

TEST(ProjectSet, WithAPoolTheQuotaAppliesOnlyToThatPool) {
  const auto change =
      parsed<projects::ProjectChangeCommand>({"project", "set", "a", "--pool", "a100", "--pool",
                                              "h100", "--gpus", "1", "--no-pool", "old"})
          .change;

  EXPECT_EQ(change.quota, api::QuotaChange{});
  EXPECT_EQ(change.pools.size(), 3U);
  EXPECT_EQ(change.pools.at("h100")->deserved.gpu_milli, api::ShareChange::Amount(1000));
  EXPECT_EQ(change.pools.at("old"), std::nullopt);
}

TEST(ProjectSet, GpusAreANumberOrRest) {
  api::ProjectChange expected{.takes_the_rest = true};
  EXPECT_EQ(parsed<projects::ProjectChangeCommand>({"project", "set", "default", "--gpus", "rest"})
                .change,
            expected);
  expected = {.takes_the_rest = false};
  expected.quota.deserved.gpu_milli = 2000;
  EXPECT_EQ(
      parsed<projects::ProjectChangeCommand>({"project", "set", "default", "--gpus", "2"}).change,
      expected);
}

TEST(ProjectUse, PrintsOrChoosesTheProject) {
  Caller by = ada();
  by.project = "team-b";
  EXPECT_EQ(parsed<projects::ProjectUseCommand>({"project", "use"}, by).in_use, "team-b");
  EXPECT_EQ(parsed<projects::ProjectUseCommand>({"project", "use", "team-a"}, by).name, "team-a");
}

TEST(Submit, UsesTheProjectInUse) {
  Caller by = ada();
  by.project = "team-b";
  EXPECT_EQ(parsed<jobs::SubmitCommand>({"submit", "single", "a", "--", "true"}, by).spec.project,
            "team-b");
  EXPECT_EQ(parsed<jobs::RunCommand>({"run", "--", "true"}, by).spec.project, "team-b");
  EXPECT_EQ(parsed<jobs::RunCommand>({"run", "--", "true"}).spec.project, "default");
}

TEST(Submit, DryRunIsRead) {
  EXPECT_TRUE(
      parsed<jobs::SubmitCommand>({"submit", "single", "a", "--dry-run", "--", "true"}).dry_run);
  EXPECT_TRUE(parsed<jobs::SubmitCommand>({"submit", "-f", "job.yaml", "--dry-run"}).dry_run);
}

TEST(NodeCommands, ReadTheirActionAndNode) {
  using What = cluster::NodeChangeCommand::What;
  EXPECT_EQ(parsed<cluster::NodeChangeCommand>({"node", "cordon", "a", "b"}).names,
            (Words{"a", "b"}));
  EXPECT_EQ(parsed<cluster::NodeChangeCommand>({"node", "cordon", "a"}).what, What::kCordon);
  EXPECT_EQ(parsed<cluster::NodeChangeCommand>({"node", "uncordon", "a"}).what, What::kUncordon);
  EXPECT_EQ(parsed<cluster::NodeChangeCommand>({"node", "drain", "a"}).what, What::kDrain);
  EXPECT_EQ(parsed<cluster::NodeListCommand>({"node", "ls", "-o", "names"}).output, Output::kNames);
  EXPECT_EQ(parsed<cluster::NodeGetCommand>({"node", "get", "list"}).name, "list");
}

TEST(WaitingCommands, AreRead) {
  EXPECT_EQ(parsed<jobs::SuspendCommand>({"suspend", "a", "b"}).names, (Words{"a", "b"}));
  EXPECT_EQ(parsed<jobs::ResumeCommand>({"resume", "a"}).names, Words{"a"});
  EXPECT_EQ(parsed<jobs::ExplainCommand>({"explain", "a", "-o", "yaml"}).output, Output::kYaml);
  EXPECT_EQ(parsed<jobs::EventsCommand>({"events"}).name, std::nullopt);
  EXPECT_TRUE(parsed<jobs::EventsCommand>({"events", "a", "-f"}).follow);
  EXPECT_EQ(parsed<jobs::QueueCommand>({"queue", "-o", "names"}).output, Output::kNames);
  EXPECT_EQ(parsed<cluster::TopCommand>({"top"}).interval, std::chrono::seconds(1));
  EXPECT_EQ(parsed<cluster::TopCommand>({"top", "--interval", "200ms", "--once"}).interval,
            milliseconds(200));
  EXPECT_EQ(parsed<jobs::ListCommand>({"list", "--project", "a"}).query.project, "a");
}

TEST(Server, ReadsItsNodeAndSchedulerOptions) {
  const config::ServeOptions options =
      parsed<server::ServerCommand>({"server", "--declare-gpus", "4:A100:80G", "--node-pool", "big",
                                     "--topology", "rack=r1,block=b1", "--packing", "spread",
                                     "--stale-grace", "never", "--forbearance", "3s", "--patience",
                                     "1h", "--decay", "0.5"})
          .options;

  EXPECT_EQ(options.declared_gpus, "4:A100:80G");
  EXPECT_EQ(options.node_pool, "big");
  EXPECT_EQ(options.topology,
            (std::map<std::string, std::string>{{"rack", "r1"}, {"block", "b1"}}));
  EXPECT_EQ(options.packing, config::Packing::kSpread);
  EXPECT_EQ(options.stale_grace, std::nullopt);
  EXPECT_EQ(options.forbearance, std::chrono::seconds(3));
  EXPECT_EQ(options.patience, std::chrono::hours(1));
  EXPECT_EQ(options.decay, 0.5);
}

TEST(Server, HasDefaultsAndTakesDeclaredGpusFromTheEnvironment) {
  Caller by = ada();
  by.environment["MUSTER_DECLARE_GPUS"] = "2";
  const config::ServeOptions options = parsed<server::ServerCommand>({"server"}, by).options;
  EXPECT_EQ(options.declared_gpus, "2");
  EXPECT_EQ(options.stale_grace, milliseconds(60'000));
  EXPECT_EQ(
      parsed<server::ServerCommand>({"server", "--declare-gpus", "3"}, by).options.declared_gpus,
      "3");
  EXPECT_EQ(parsed<server::ServerCommand>({"server", "--stale-grace", "5s"}).options.stale_grace,
            milliseconds(5'000));
}

TEST(Groups, WithoutASubcommandShowTheirHelp) {
  const auto command = parsed<HelpCommand>({"project"});
  EXPECT_EQ(command.path, Words{"project"});
  EXPECT_FALSE(command.asked);
}

TEST(BadClusterUsage, IsReportedInASentence) {
  const std::pair<Words, std::string> lines[] = {
      {{"server", "--stop", "--keep-jobs", "3"}, "--keep-jobs cannot be used with --stop"},
      {{"server", "--stop", "--state-dir", "/s"}, "accepted"},
      {{"project", "usage", "a", "--since", "2030-01-01T00:00:00Z"}, "--since is in the future"},
      {{"project", "usage", "a", "--since", "1h", "--until", "2h"}, "--since is after --until"},
      {{"project", "crate", "a"}, "unknown command 'crate'; did you mean 'create'?"},
      {{"project", "create"}, "NAME is missing; name the project"},
      {{"project", "create", "a", "--gpus", "-1"}, "--gpus '-1' is not a number"},
      {{"project", "create", "a", "--gpus", "many"}, "nor 'unlimited'"},
      {{"project", "create", "a", "--memory", "much"}, "--memory 'much' is not a size"},
      {{"project", "create", "a", "--weight", "nan"}, "--weight 'nan' is not a weight"},
      {{"project", "create", "a", "--weight", "-1"}, "--weight '-1' is not a weight"},
      {{"project", "create", "a", "--limit", "1", "--limit-gpus", "2"}, "give only one"},
      {{"project", "set", "a"}, "give a property to change"},
      {{"project", "set", "a", "--pool", "x"}, "--pool needs --gpus"},
      {{"project", "set", "a", "--pool", "x", "--gpus", "1", "--no-pool", "x"}, "--no-pool 'x'"},
      {{"project", "delete"}, "NAME is missing; name the projects"},
      {{"project", "use", "a", "b"}, "unexpected 'b'"},
      {{"node", "drain"}, "NAME is missing; name the nodes"},
      {{"top", "--interval", "1ms"}, "--interval is below 100ms"},
      {{"events", "-f", "-o", "json"}, "--output cannot be used with --follow"},
      {{"submit", "single", "a", "--dry-run", "--follow", "--", "x"}, "starts nothing"},
      {{"server", "--packing", "sprad"}, "did you mean 'spread'?"},
      {{"server", "--topology", "rack"}, "--topology 'rack' is not LEVEL=DOMAIN"},
      {{"server", "--decay", "x"}, "--decay 'x' is not a number"},
      {{"server", "--stale-grace", "soon"}, "--stale-grace 'soon' is not a time"},
      {{"server", "--node-pool", ""}, "--node-pool is empty"},
      {{"top", "--onec"}, "did you mean '--once'?"},
  };
  for (const auto& [words, fault] : lines) {
    EXPECT_NE(refusal(words).find(fault), std::string::npos)
        << refusal(words) << "\n  should say: " << fault;
  }
}

}  // namespace

}  // namespace muster::cli

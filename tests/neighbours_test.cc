// Two projects on one server are isolated from each other: in open streams, after a project was
// removed or moved, and where both use the same name. And only an admin of the server runs a job
// without a sandbox, because such a job can read the files of every project.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "api/wire.h"
#include "given_away.h"
#include "route_rows.h"
#include "velvet_team.h"

namespace muster::server {
namespace {

using access::Role;

TEST(Neighbours, AWatcherReceivesNoEventOfAnotherProject) {
  for (const char* const path : {"/v1/watch/jobs", "/v1/watch/events"}) {
    Team team;
    TeamServer::Ask ask{.path = path};
    ask.token = team.token_of("stranger");
    const http::Response answer = team.ask(ask);
    ASSERT_EQ(answer.status, 200) << path << answer.body;

    team.submit(velvet_spec("obsidian-two", 1), "hyacinth");
    ASSERT_TRUE(team.controller().stop("obsidian", true));
    team.end("quicksilver");
    team.settle();

    const http::Response received{.body = answer.body + team.read(answer.stream)};
    EXPECT_EQ(leaked_word(received, ask, ""), "") << path << "\n" << received.body;
  }
}

TEST(Neighbours, OnlyAnAdminOfTheServerRunsAJobWithoutASandbox) {
  Team team;
  job::JobSpec spec = velvet_spec("bare", 0);
  spec.sandbox = job::Sandbox::kNone;
  for (const std::string dry_run : {"true", "false"}) {
    for (const auto& [caller, status] : std::map<std::string, int>{
             {"stranger", 404}, {"viewer", 403}, {"member", 403}, {"admin", 403}}) {
      EXPECT_EQ(team.ask({.method = "POST",
                          .path = "/v1/jobs",
                          .query = {{"dry_run", dry_run}},
                          .body = api::spec_to_json(spec),
                          .token = team.token_of(caller)})
                    .status,
                status)
          << caller;
    }
  }
  EXPECT_EQ(team.ask({.method = "POST",
                      .path = "/v1/jobs",
                      .body = api::spec_to_json(spec),
                      .token = team.token_of("server admin")})
                .status,
            201);

  TeamServer::Ask exec = ask_to_execute("bare", "main");
  exec.token = team.token_of("member");
  EXPECT_EQ(team.ask(exec).status, 403);
  exec.token = team.token_of("server admin");
  EXPECT_EQ(team.ask(exec).status, 101);
  exec.token.clear();
  exec.over_unix_socket = true;
  EXPECT_EQ(team.ask(exec).status, 101);
}

TEST(Neighbours, AJobOfAnotherProjectCannotBeTheOriginOfARerun) {
  Team team;
  const job::JobSpec spec = single_job("copy", "green", 0);
  const auto rerun = [&](const std::string& of, const std::string& caller) {
    return team.ask({.method = "POST",
                     .path = "/v1/jobs",
                     .query = {{"rerun_of", of}, {"name_suffix", "true"}},
                     .body = api::spec_to_json(spec),
                     .token = team.token_of(caller)});
  };

  const http::Response unseen = rerun("obsidian", "stranger");
  const http::Response missing = rerun("nowhere", "stranger");

  EXPECT_EQ(unseen.status, 404) << unseen.body;
  EXPECT_EQ(missing.status, 404) << missing.body;
  EXPECT_EQ(rerun("obsidian", "server admin").status, 201);
}

TEST(Neighbours, AnAdminDoesNotReadTheAuditLogOfAnEarlierProjectOfTheSameName) {
  Team team;
  const access::Actor rudi{.user = "rudi"};
  const auto records = [&](const std::string& caller) {
    return team
        .ask({.path = "/v1/audit",
              .query = {{"project", "velvet-spare"}},
              .token = team.token_of(caller)})
        .body;
  };
  ASSERT_TRUE(team.accounts().set_secret("velvet-spare", "OLD", "x", rudi));
  team.clock().advance(std::chrono::seconds(1));
  ASSERT_TRUE(team.controller().projects().remove("velvet-spare", rudi));
  team.clock().advance(std::chrono::seconds(1));
  ASSERT_TRUE(team.controller().projects().create({.name = "velvet-spare"}, rudi));
  access::User jasper = *team.accounts().user("jasper");
  jasper.projects["velvet-spare"] = Role::kAdmin;
  ASSERT_TRUE(team.accounts().set_user(jasper, rudi));
  ASSERT_TRUE(team.accounts().set_secret("velvet-spare", "NEW", "x", rudi));

  EXPECT_EQ(records("admin").find("OLD"), std::string::npos) << records("admin");
  EXPECT_NE(records("admin").find("NEW"), std::string::npos);
  EXPECT_NE(records("server viewer").find("OLD"), std::string::npos);
}

TEST(Neighbours, AnAdminDoesNotReadTheNamesOfHiddenParentsInTheAuditLog) {
  Team team;
  job::Project velvet = team.controller().projects().status("velvet")->project;
  velvet.parent.clear();
  velvet.priority = 7;
  ASSERT_TRUE(team.controller().projects().set(velvet, {.user = "rudi"}));
  const auto records = [&](const std::string& caller) {
    return team
        .ask({.path = "/v1/audit",
              .query = {{"project", "velvet"}, {"action", "project"}},
              .token = team.token_of(caller)})
        .body;
  };

  EXPECT_EQ(records("admin").find("umbrella"), std::string::npos) << records("admin");
  EXPECT_NE(records("admin").find("\"priority\""), std::string::npos) << records("admin");
  EXPECT_NE(records("server viewer").find("umbrella"), std::string::npos);
}

/// A team whose project velvet-spare had a job and a sweep of hyacinth, was deleted, and now
/// belongs to sam, the stranger.
class TeamWithAnHeir : public Team {
 public:
  TeamWithAnHeir() {
    job::JobSpec spec = velvet_spec("obsidian-old", 0);
    spec.project = "velvet-spare";
    submit(spec, "hyacinth");
    clock().advance(std::chrono::minutes(1));
    end("obsidian-old");
    sweep::SweepSpec searched = velvet_sweep("amethyst-old");
    searched.job.project = "velvet-spare";
    searched.job.resources.gpus = 0;
    const auto made = controller().sweeps().create(searched, {.user = "hyacinth"});
    EXPECT_TRUE(made) << made.error().to_string();
    // Before it submits its first trial.
    EXPECT_TRUE(controller().sweeps().stop(made->summary.id, {}));
    settle();
    clock().advance(std::chrono::seconds(1));
    const access::Actor rudi{.user = "rudi"};
    const auto removed = controller().projects().remove("velvet-spare", rudi);
    EXPECT_TRUE(removed) << removed.error().to_string();
    clock().advance(std::chrono::seconds(1));
    EXPECT_TRUE(controller().projects().create({.name = "velvet-spare"}, rudi));
    access::User sam = *accounts().user("sam");
    sam.projects["velvet-spare"] = Role::kAdmin;
    EXPECT_TRUE(accounts().set_user(sam, rudi));
    settle();
  }

  http::Response ask_as(const std::string& caller, TeamServer::Ask ask) {
    ask.token = token_of(caller);
    return this->ask(ask);
  }
};

TEST(Neighbours, AnHeirOfAProjectDoesNotSeeItsEarlierSweeps) {
  TeamWithAnHeir team;
  const std::string sweep = "/v1/sweeps/amethyst-old";
  for (const char* const path :
       {"/v1/sweeps", "/v1/list", "/v1/watch/jobs", "/v1/jobs/amethyst-old"}) {
    const std::string mine = team.ask_as("stranger", {.path = path}).body;
    EXPECT_EQ(mine.find("sardonyx"), std::string::npos) << path << mine;
    EXPECT_EQ(mine.find("is a sweep"), std::string::npos) << path << mine;
    EXPECT_EQ(mine.find(R"("amethyst-old")"), std::string::npos) << path << mine;
  }
  EXPECT_EQ(team.ask_as("stranger", {.path = sweep}).status, 404);
  for (const char* const action : {"/stop", "/pause", "/resume"}) {
    EXPECT_EQ(team.ask_as("stranger", {.method = "POST", .path = sweep + action}).status, 404);
  }
  EXPECT_EQ(team.ask_as("stranger", {.method = "DELETE", .path = sweep}).status, 404);

  const std::string all = team.ask_as("server admin", {.path = "/v1/sweeps"}).body;
  EXPECT_NE(all.find("amethyst-old"), std::string::npos) << all;
  EXPECT_EQ(team.ask_as("server admin", {.method = "DELETE", .path = sweep}).status, 204);
}

TEST(Neighbours, AnHeirOfAProjectDoesNotSeeTheRemovalOfItsEarlierJobs) {
  for (const std::string caller : {"stranger", "server admin"}) {
    TeamWithAnHeir team;
    const http::Response answer = team.ask_as(caller, {.path = "/v1/watch/jobs"});
    ASSERT_EQ(answer.status, 200) << answer.body;
    const access::Actor rudi{.user = "rudi"};
    team.submit(single_job("green-new", "velvet-spare", 0), "sam");
    team.end("green-new");

    ASSERT_TRUE(team.controller().remove("obsidian-old", rudi));
    ASSERT_EQ(
        team.ask_as("server admin", {.method = "DELETE", .path = "/v1/sweeps/amethyst-old"}).status,
        204);
    ASSERT_TRUE(team.controller().remove("green-new", rudi));
    team.settle();

    const std::string events = team.read(answer.stream);
    const bool sees_all = caller == "server admin";
    EXPECT_EQ(events.find("obsidian-old") != std::string::npos, sees_all) << events;
    EXPECT_EQ(events.find("amethyst-old") != std::string::npos, sees_all) << events;
    EXPECT_NE(events.find("event: removed"), std::string::npos) << events;
    EXPECT_NE(events.find("green-new"), std::string::npos) << events;
  }
}

TEST(Neighbours, AnHeirOfAProjectDoesNotSeeItsEarlierUsage) {
  TeamWithAnHeir team;
  team.submit(single_job("green-new", "velvet-spare", 0), "sam");
  // The clock of the test is in November 2023.
  const TeamServer::Ask ask{
      .path = "/v1/projects/velvet-spare/usage",
      .query = {{"since", "2023-01-01T00:00:00Z"}, {"until", "2024-01-01T00:00:00Z"}}};

  const http::Response mine = team.ask_as("stranger", ask);
  const http::Response all = team.ask_as("server admin", ask);

  ASSERT_EQ(mine.status, 200) << mine.body;
  EXPECT_EQ(mine.body.find("hyacinth"), std::string::npos) << mine.body;
  EXPECT_NE(mine.body.find("sam"), std::string::npos) << mine.body;
  EXPECT_NE(all.body.find("hyacinth"), std::string::npos) << all.body;
}

TEST(Neighbours, AStreamEndsWhenTheReaderLosesItsProjectBecauseItsParentChanges) {
  for (const char* const path : {"/v1/jobs/quicksilver/logs", "/v1/watch/events"}) {
    Team team;
    team.add_user("onyx", {{"umbrella", Role::kViewer}});
    TeamServer::Ask ask{.path = path};
    ask.query[path == std::string("/v1/watch/events") ? "name" : "follow"] =
        path == std::string("/v1/watch/events") ? "quicksilver" : "true";
    ask.token = team.token({.user = "onyx"});
    const http::Response answer = team.ask(ask);
    ASSERT_EQ(answer.status, 200) << path << answer.body;

    job::Project velvet = team.controller().projects().status("velvet")->project;
    velvet.parent.clear();
    ASSERT_TRUE(team.controller().projects().set(velvet, {.user = "rudi"}));
    team.engine().logs["launcher"] += "azurite\n";
    ASSERT_TRUE(team.controller().stop("quicksilver", true));
    team.settle();

    EXPECT_EQ(team.read(answer.stream), "(end)") << path;
  }
}

TEST(Neighbours, ANameMeansTheJobThatTheCallerSees) {
  Team team;
  team.submit(single_job("obsidian", "green", 0), "sam");
  const auto ask = [&](const std::string& path, const std::string& caller,
                       std::map<std::string, std::string> query = {}) {
    return team.ask({.path = path, .query = std::move(query), .token = team.token_of(caller)});
  };

  const auto green = api::job_from_json(ask("/v1/jobs/obsidian", "stranger").body);
  ASSERT_TRUE(green);
  EXPECT_EQ(green->spec.project, "green");
  EXPECT_EQ(api::job_from_json(ask("/v1/jobs/obsidian", "viewer").body)->spec.project, "velvet");
  EXPECT_EQ(ask("/v1/jobs/obsidian", "member").status, 409) << "sees both";
  EXPECT_EQ(ask("/v1/jobs/obsidian", "member", {{"project", "velvet"}}).status, 200);
  EXPECT_EQ(ask("/v1/jobs/" + green->id, "member").status, 200);
  EXPECT_EQ(ask("/v1/jobs/" + green->id, "viewer").status, 404);
}

TEST(Neighbours, AnIdempotencyKeyBelongsToOneUser) {
  Team team;
  const std::string key = "run-1";
  const auto first = team.controller().submit(velvet_spec("obsidian-two", 1), "hyacinth\n" + key,
                                              {.user = "hyacinth"});
  ASSERT_TRUE(first);

  const job::JobSpec spec = single_job("green-two", "green", 0);
  const http::Response answer = team.ask({.method = "POST",
                                          .path = "/v1/jobs",
                                          .body = api::spec_to_json(spec),
                                          .token = team.token_of("stranger"),
                                          .headers = {{"idempotency-key", key}}});

  ASSERT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(api::job_from_json(answer.body)->spec.name, "green-two");
}

TEST(Neighbours, AnIdempotencyKeyDoesNotShowAnArrayOfAProjectThatItsUserHasLeft) {
  Team team;
  const auto submit = [&](const job::JobSpec& spec) {
    return team.ask({.method = "POST",
                     .path = "/v1/jobs",
                     .body = api::spec_to_json(spec),
                     .token = team.token_of("member"),
                     .headers = {{"idempotency-key", "run-1"}}});
  };
  ASSERT_EQ(submit(velvet_array("obsidian-array")).status, 202);
  access::User hyacinth = *team.accounts().user("hyacinth");
  hyacinth.projects = {{"green", Role::kMember}};
  ASSERT_TRUE(team.accounts().set_user(hyacinth, {}));

  job::JobSpec spec = single_job("green-array", "green", 0);
  spec.array.indexes = "0-1";
  const http::Response answer = submit(spec);

  EXPECT_EQ(answer.status, 409) << answer.body;
  EXPECT_EQ(answer.body.find("sardonyx"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.body.find("obsidian"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace muster::server

// The contract of every SlurmClient, on a real cluster: Slurm's programs, a slurmrestd of this user
// in each version that it serves, and a slurmrestd that requires tokens, on its socket and on its
// port. tests/slurm_clients.py runs this program: it starts the cluster, and stops and continues
// the controller for the tests that need this.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/test_loop.h"
#include "engine/slurm/open_client.h"

namespace muster::engine::slurm {
namespace {

using base::ErrorCode;
using base::Result;

/// The kind of a client: Slurm's programs, or slurmrestd in one version.
struct Way {
  std::string name;
  const char* variable = nullptr;  ///< the variable with the address of slurmrestd; null: programs
  int version = 0;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  EXPECT_NE(value, nullptr) << name << " is not set: run tests/slurm_clients.py";
  return value == nullptr ? "" : value;
}

class SlurmClientContract : public testing::TestWithParam<Way>, protected base::TestLoop {
 protected:
  std::unique_ptr<SlurmClient> open(std::chrono::milliseconds patience = std::chrono::seconds(45)) {
    if (GetParam().variable == nullptr) {
      auto opened = CommandClient::open(loop(), {.patience = patience});
      EXPECT_TRUE(opened) << opened.error().to_string();
      return opened ? *std::move(opened) : nullptr;
    }
    auto endpoint = parse_rest_endpoint(variable(GetParam().variable));
    EXPECT_TRUE(endpoint) << endpoint.error().to_string();
    if (!endpoint) return nullptr;
    return std::make_unique<RestClient>(loop(), RestOptions{.endpoint = *std::move(endpoint),
                                                            .user = variable("MUSTER_SLURM_USER"),
                                                            .user_id = ::geteuid(),
                                                            .answer_patience = patience,
                                                            .newest_version = GetParam().version});
  }

  Result<uint64_t> submit(SlurmClient& client, Submission submission) {
    return answer<uint64_t>(
        [&](auto then) { client.submit(std::move(submission), std::move(then)); });
  }
  Result<std::vector<ListedJob>> jobs(SlurmClient& client) {
    return answer<std::vector<ListedJob>>([&](auto then) { client.jobs(std::move(then)); });
  }
  Result<void> cancel(SlurmClient& client, std::vector<uint64_t> ids) {
    return answer<void>([&](auto then) { client.cancel(std::move(ids), std::move(then)); });
  }

  /// Nothing: the job is not listed, or there was no answer. Debian's slurmrestd rarely closes a connection
  /// without an answer; the engine repeats its listings, as job_that() does.
  std::optional<ListedJob> job(SlurmClient& client, uint64_t id) {
    const auto listed = jobs(client);
    if (!listed) {
      EXPECT_EQ(listed.error().code, ErrorCode::kUnavailable) << listed.error().to_string();
      return std::nullopt;
    }
    const auto found = std::find_if(listed->begin(), listed->end(),
                                    [&](const ListedJob& one) { return one.id == id; });
    return found == listed->end() ? std::nullopt : std::optional(*found);
  }

  /// Polls until `holds` is true; the limit allows for a slow Slurm.
  template <class Condition>
  ListedJob job_that(SlurmClient& client, uint64_t id, Condition holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::optional<ListedJob> found;
    while (std::chrono::steady_clock::now() < end) {
      found = job(client, id);
      if (found && holds(*found)) return *found;
      bool waited = false;
      const auto timer = loop().after(std::chrono::milliseconds(100), [&] {
        waited = true;
        look();
      });
      run_until([&] { return waited; });
    }
    ADD_FAILURE() << "Slurm job " << id << " is "
                  << (found ? found->state_text + " " + found->reason : "not listed");
    return found.value_or(ListedJob{});
  }

  /// The submission of a job that runs until it is cancelled, unless it gets another script.
  Submission sleeper(const std::string& what, std::vector<Component> components) {
    return {.name = "contract",
            .comment = "muster:contract:" + what + ":" + GetParam().name,
            .script = "#!/bin/sh\nexec sleep 600\n",
            .components = std::move(components),
            .time_limit = std::chrono::minutes(5),
            .folder = "/",
            .environment = {{"PATH", "/usr/bin:/bin"}}};
  }
  static Component tasks(int count, int per_node = 1) {
    return {.tasks = count,
            .tasks_per_node = per_node,
            .cpus_per_task = 1,
            .memory_bytes_per_node = int64_t{64} << 20};
  }

  /// Cancels the jobs of the test.
  void end(SlurmClient& client, uint64_t id) {
    const auto ended = cancel(client, {id});
    EXPECT_TRUE(ended) << ended.error().to_string();
    job_that(client, id, [](const ListedJob& one) { return is_over(one.state); });
  }
};

// --- jobs ---

TEST_P(SlurmClientContract, AJobIsSubmittedListedAndCancelled) {
  const auto client = open();
  Submission submission = sleeper("one", {tasks(2)});
  const std::string comment = submission.comment;

  const auto id = submit(*client, std::move(submission));
  ASSERT_TRUE(id) << id.error().to_string();

  const ListedJob running =
      job_that(*client, *id, [](const ListedJob& one) { return one.state == JobState::kRunning; });
  EXPECT_EQ(running.comment, comment);
  EXPECT_EQ(running.state_text, "RUNNING");
  EXPECT_EQ(running.nodes.size(), 2U);
  EXPECT_EQ(running.partition, "main");
  EXPECT_EQ(running.reason, "");
  EXPECT_EQ(running.restarts, 0);
  EXPECT_EQ(running.may_start, std::nullopt);

  const auto cancelled = cancel(*client, {*id});
  ASSERT_TRUE(cancelled) << cancelled.error().to_string();
  const ListedJob ended =
      job_that(*client, *id, [](const ListedJob& one) { return is_over(one.state); });
  EXPECT_EQ(ended.state, JobState::kCancelled);
}

TEST_P(SlurmClientContract, ListsTheExitStatusOfAScript) {
  const auto client = open();
  Submission fails = sleeper("fails", {tasks(1)});
  fails.script = "#!/bin/sh\nexit 7\n";
  Submission is_killed = sleeper("is-killed", {tasks(1)});
  is_killed.script = "#!/bin/sh\nkill -SEGV $$\n";
  Submission is_done = sleeper("is-done", {tasks(1)});
  // The variables of its environment, and its folder.
  is_done.environment["GREETING"] = "a \"b\" 'c' $d\\n";
  is_done.folder = "/usr";
  is_done.script =
      "#!/bin/sh\n"
      "test \"$GREETING\" = 'a \"b\" '\"'\"'c'\"'\"' $d\\n' || exit 3\n"
      "test \"$(pwd)\" = /usr || exit 4\n";

  const auto first = submit(*client, std::move(fails));
  const auto second = submit(*client, std::move(is_killed));
  const auto third = submit(*client, std::move(is_done));

  ASSERT_TRUE(first) << first.error().to_string();
  ASSERT_TRUE(second) << second.error().to_string();
  ASSERT_TRUE(third) << third.error().to_string();
  const auto over = [](const ListedJob& one) { return is_over(one.state); };
  const ListedJob failed = job_that(*client, *first, over);
  EXPECT_EQ(failed.state, JobState::kFailed);
  EXPECT_EQ(failed.exit_code, 7);
  EXPECT_EQ(failed.exit_signal, 0);
  const ListedJob killed = job_that(*client, *second, over);
  EXPECT_EQ(killed.state, JobState::kFailed);
  EXPECT_EQ(killed.exit_signal, SIGSEGV);
  const ListedJob done = job_that(*client, *third, over);
  EXPECT_EQ(done.state, JobState::kCompleted) << done.exit_code;
  EXPECT_EQ(done.exit_code, 0);
}

TEST_P(SlurmClientContract, ListsAWaitingJobWithSlurmsReason) {
  const auto client = open();
  Submission whole = sleeper("whole", {tasks(1)});
  whole.components[0].cpus_per_task = 8;
  whole.partition = "main";
  std::vector<uint64_t> holders;
  // One job more than the cluster has nodes: the last job waits.
  const auto nodes = answer<std::vector<ListedNode>>([&](auto then) { client->nodes(then); });
  ASSERT_TRUE(nodes) << nodes.error().to_string();
  for (size_t i = 0; i < nodes->size(); ++i) {
    const auto id = submit(*client, whole);
    ASSERT_TRUE(id) << id.error().to_string();
    holders.push_back(*id);
  }
  for (const uint64_t holder : holders) {
    job_that(*client, holder, [](const ListedJob& one) { return one.state == JobState::kRunning; });
  }

  const auto id = submit(*client, whole);

  ASSERT_TRUE(id) << id.error().to_string();
  const ListedJob waiting =
      job_that(*client, *id, [](const ListedJob& one) { return one.reason == "Resources"; });
  EXPECT_EQ(waiting.state, JobState::kPending);
  EXPECT_TRUE(waiting.nodes.empty());
  // Slurm makes an estimate in its second scheduling pass.
  const ListedJob estimated =
      job_that(*client, *id, [](const ListedJob& one) { return one.may_start.has_value(); });
  EXPECT_GT(*estimated.may_start, std::chrono::system_clock::now());
  holders.push_back(*id);
  const auto cancelled = cancel(*client, holders);
  EXPECT_TRUE(cancelled) << cancelled.error().to_string();
  for (const uint64_t one : holders) {
    job_that(*client, one, [](const ListedJob& listed) { return is_over(listed.state); });
  }
}

TEST_P(SlurmClientContract, AHeterogeneousJobHasTheNodesOfAllItsComponents) {
  const auto client = open();
  Submission submission = sleeper("het", {tasks(1), tasks(1)});
  submission.components[1].cpus_per_task = 2;
  const std::string comment = submission.comment;

  const auto id = submit(*client, std::move(submission));

  ASSERT_TRUE(id) << id.error().to_string();
  const ListedJob running =
      job_that(*client, *id, [](const ListedJob& one) { return one.state == JobState::kRunning; });
  EXPECT_EQ(running.comment, comment);
  ASSERT_EQ(running.nodes.size(), 2U);
  EXPECT_NE(running.nodes[0], running.nodes[1]);
  EXPECT_FALSE(job(*client, *id + 1)) << "a component is listed as a job";
  end(*client, *id);
}

TEST_P(SlurmClientContract, RequestsTheNodesThatTasksNeed) {
  const auto client = open();
  // Three tasks, two on each node: two nodes. Two or three tasks, one on each node: as many nodes
  // as are free.
  const auto packed = submit(*client, sleeper("packed", {tasks(3, 2)}));
  ASSERT_TRUE(packed) << packed.error().to_string();
  const auto is_running = [](const ListedJob& one) { return one.state == JobState::kRunning; };
  EXPECT_EQ(job_that(*client, *packed, is_running).nodes.size(), 2U);
  end(*client, *packed);

  Submission elastic = sleeper("elastic", {tasks(50)});
  elastic.components[0].least_tasks = 2;
  const auto fewer = submit(*client, std::move(elastic));
  ASSERT_TRUE(fewer) << fewer.error().to_string();
  EXPECT_GE(job_that(*client, *fewer, is_running).nodes.size(), 2U);
  end(*client, *fewer);
}

TEST_P(SlurmClientContract, RespectsExcludedNodesAndGpus) {
  const auto client = open();
  const auto nodes = answer<std::vector<ListedNode>>([&](auto then) { client->nodes(then); });
  ASSERT_TRUE(nodes) << nodes.error().to_string();
  ASSERT_GE(nodes->size(), 2U);
  const ListedNode& gpu_node = nodes->back();
  ASSERT_GT(gpu_node.gpus, 0);
  Submission submission = sleeper("excluded", {tasks(1)});
  submission.components[0].gpus_per_node = gpu_node.gpus;
  submission.components[0].gpu_type = gpu_node.gpu_type;
  for (const ListedNode& node : *nodes) {
    if (node.name != gpu_node.name) submission.excluded_nodes.push_back(node.name);
  }
  submission.script =
      "#!/bin/sh\ntest \"$SLURM_GPUS_ON_NODE\" = " + std::to_string(gpu_node.gpus) + "\n";

  const auto id = submit(*client, std::move(submission));

  ASSERT_TRUE(id) << id.error().to_string();
  const ListedJob ended =
      job_that(*client, *id, [](const ListedJob& one) { return is_over(one.state); });
  EXPECT_EQ(ended.state, JobState::kCompleted) << ended.reason;
  EXPECT_EQ(ended.nodes, std::vector<std::string>{gpu_node.name});
}

// --- refusals ---

TEST_P(SlurmClientContract, ARefusalQuotesSlurm) {
  const auto client = open();
  struct Case {
    std::string words;
    std::function<void(Submission&)> spoil;
  };
  const std::vector<Case> cases{
      {"Invalid partition name specified",
       [](Submission& one) { one.partition = "no-such-partition"; }},
      {"Requested node configuration is not available",
       [](Submission& one) { one.components[0].memory_bytes_per_node = int64_t{1} << 50; }},
      {"Requested node configuration is not available",
       [](Submission& one) { one.components[0].gpus_per_node = 1000; }},
      {"Requested reservation is invalid", [](Submission& one) { one.reservation = "nobody's"; }},
      {"Invalid feature specification", [](Submission& one) { one.constraint = "no-such"; }},
      {"Invalid node name specified",
       [](Submission& one) { one.excluded_nodes = {"no-such-node"}; }},
  };
  for (const Case& one : cases) {
    Submission submission = sleeper("refused", {tasks(1)});
    one.spoil(submission);
    const auto id = submit(*client, std::move(submission));
    ASSERT_FALSE(id) << one.words;
    EXPECT_EQ(id.error().code, ErrorCode::kRefused) << id.error().to_string();
    EXPECT_TRUE(id.error().what.starts_with("Slurm refuses the job: ")) << id.error().what;
    EXPECT_NE(id.error().what.find(one.words), std::string::npos) << id.error().what;
    EXPECT_FALSE(id.error().advice.empty()) << id.error().what;
  }
}

TEST_P(SlurmClientContract, CancellingAnEndedOrUnknownJobSucceeds) {
  const auto client = open();
  const auto id = submit(*client, sleeper("twice", {tasks(1)}));
  ASSERT_TRUE(id) << id.error().to_string();
  end(*client, *id);
  const auto again = cancel(*client, {*id, 999'999, *id});
  EXPECT_TRUE(again) << again.error().to_string();
  const auto none = cancel(*client, {});
  EXPECT_TRUE(none);
}

// --- the cluster ---

TEST_P(SlurmClientContract, NodesAreListed) {
  const auto client = open();
  const auto nodes = answer<std::vector<ListedNode>>([&](auto then) { client->nodes(then); });
  ASSERT_TRUE(nodes) << nodes.error().to_string();
  ASSERT_GE(nodes->size(), 2U);
  for (const ListedNode& node : *nodes) {
    EXPECT_TRUE(node.takes_jobs) << node.name << " is " << node.state_text;
    EXPECT_EQ(node.address, "127.0.0.1");
    EXPECT_EQ(node.cpus, 8);
    EXPECT_EQ(node.memory_bytes, int64_t{8000} << 20);
    EXPECT_GT(node.gpus, 0);
    EXPECT_EQ(node.state_text.find_first_of("abcdefghijklmnopqrstuvwxyz"), std::string::npos)
        << node.state_text;
    // v0.0.36 does not list this.
    if (GetParam().version != 36) {
      EXPECT_NE(std::find(node.partitions.begin(), node.partitions.end(), "main"),
                node.partitions.end());
    }
  }
}

TEST_P(SlurmClientContract, ReportsItsFacts) {
  const auto client = open();
  const auto facts = answer<ClientFacts>([&](auto then) { client->facts(then); });
  ASSERT_TRUE(facts) << facts.error().to_string();
  EXPECT_TRUE(facts->version.starts_with("2")) << facts->version;
  EXPECT_FALSE(facts->way.empty());
  if (GetParam().version != 0) {
    EXPECT_EQ(facts->api, "v0.0." + std::to_string(GetParam().version));
  }
}

TEST_P(SlurmClientContract, WithoutADatabaseThereAreNoPastJobs) {
  const auto client = open();
  const auto past = answer<std::vector<ListedJob>>(
      [&](auto then) { client->past_jobs({1, 2}, std::move(then)); });
  ASSERT_TRUE(past) << past.error().to_string();
  EXPECT_TRUE(past->empty());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SlurmClientContract,
    testing::Values(Way{.name = "Programs"},
                    Way{.name = "Own36", .variable = "MUSTER_SLURM_OWN_SOCKET", .version = 36},
                    Way{.name = "Own37", .variable = "MUSTER_SLURM_OWN_SOCKET", .version = 37},
                    Way{.name = "Own38", .variable = "MUSTER_SLURM_OWN_SOCKET", .version = 38},
                    Way{.name = "Socket38", .variable = "MUSTER_SLURM_SOCKET", .version = 38},
                    Way{.name = "Port38", .variable = "MUSTER_SLURM_PORT", .version = 38}),
    [](const auto& way) { return way.param.name; });

// --- the number of requests (tests/slurm_clients.py counts them) ---

using SlurmClientLook = SlurmClientContract;

TEST_P(SlurmClientLook, IsOneCall) {
  const auto client = open();
  const auto listed = jobs(*client);
  ASSERT_TRUE(listed) << listed.error().to_string();
}

// --- while the controller is stopped (by tests/slurm_clients.py) ---

using SlurmClientAlone = SlurmClientContract;

TEST_P(SlurmClientAlone, AStoppedControllerIsUnavailable) {
  const auto client = open();
  const auto id = submit(*client, sleeper("down", {tasks(1)}));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kUnavailable) << id.error().to_string();
  const auto listed = jobs(*client);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kUnavailable) << listed.error().to_string();
  const auto nodes = answer<std::vector<ListedNode>>([&](auto then) { client->nodes(then); });
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().code, ErrorCode::kUnavailable) << nodes.error().to_string();
  const auto cancelled = cancel(*client, {1});
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kUnavailable) << cancelled.error().to_string();
  const auto facts = answer<ClientFacts>([&](auto then) { client->facts(then); });
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::kUnavailable) << facts.error().to_string();
}

/// The controller accepts connections and does not answer.
using SlurmClientMute = SlurmClientContract;

TEST_P(SlurmClientMute, ALostAnswerIsATimeout) {
  const auto client = open(std::chrono::seconds(20));
  const auto id = submit(*client, sleeper("lost", {tasks(1)}));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kTimeout) << id.error().to_string();
}

/// After the controller has continued.
using SlurmClientAfter = SlurmClientContract;

TEST_P(SlurmClientAfter, ALostJobIsFoundByItsComment) {
  const auto client = open();
  const std::string comment = sleeper("lost", {}).comment;
  const auto end_of_patience = std::chrono::steady_clock::now() + kPatience;
  std::vector<uint64_t> found;
  while (found.empty() && std::chrono::steady_clock::now() < end_of_patience) {
    const auto listed = jobs(*client);
    ASSERT_TRUE(listed) << listed.error().to_string();
    for (const ListedJob& one : *listed) {
      if (one.comment == comment) found.push_back(one.id);
    }
  }
  ASSERT_FALSE(found.empty()) << comment;
  const auto cancelled = cancel(*client, found);
  EXPECT_TRUE(cancelled) << cancelled.error().to_string();
}

const auto kNamed = [](const auto& way) { return way.param.name; };
const auto kWithoutTokens =
    testing::Values(Way{.name = "Programs"},
                    Way{.name = "Own36", .variable = "MUSTER_SLURM_OWN_SOCKET", .version = 36},
                    Way{.name = "Own38", .variable = "MUSTER_SLURM_OWN_SOCKET", .version = 38});
const auto kWithToken =
    testing::Values(Way{.name = "Port38", .variable = "MUSTER_SLURM_PORT", .version = 38});
INSTANTIATE_TEST_SUITE_P(Look, SlurmClientLook, kWithoutTokens, kNamed);
INSTANTIATE_TEST_SUITE_P(Down, SlurmClientAlone, kWithoutTokens, kNamed);
INSTANTIATE_TEST_SUITE_P(DownWithToken, SlurmClientAlone, kWithToken, kNamed);
INSTANTIATE_TEST_SUITE_P(Mute, SlurmClientMute, kWithoutTokens, kNamed);
INSTANTIATE_TEST_SUITE_P(After, SlurmClientAfter, kWithoutTokens, kNamed);

}  // namespace
}  // namespace muster::engine::slurm

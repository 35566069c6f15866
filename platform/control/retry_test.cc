#include "control/retry.h"

#include <gtest/gtest.h>

#include "control/test_parts.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::Job;
using job::RetryRule;
using job::Task;
using Action = job::RetryRule::Action;

Job job_with_retries(int retries, std::vector<RetryRule> rules = {}) {
  Job job;
  job.spec.scheduling.retries = retries;
  job.spec.scheduling.retry_rules = std::move(rules);
  return job;
}

Task ended_with(job::ExitStatus exit) {
  return {.name = "worker-0", .node = "n1", .exit = std::move(exit)};
}

TEST(Retry, WithoutRetriesEveryFailureIsTheLast) {
  EXPECT_FALSE(retry_of(job_with_retries(0), ended_with({.code = 1}), {}));
  EXPECT_FALSE(retry_of(job_with_retries(0), ended_with({.lost = true}), {}));
}

TEST(Retry, CountsFailuresOfTheJob) {
  Job job = job_with_retries(2);
  const auto first = retry_of(job, ended_with({.code = 1}), {});
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, (job::Retry{.number = 1, .of = 2}));
  EXPECT_EQ(words::sentence(*first), "retry 1 of 2");

  job.retries_used = 2;
  EXPECT_FALSE(retry_of(job, ended_with({.code = 1}), {}));
}

TEST(Retry, DoesNotCountFailuresOfTheMachine) {
  Job job = job_with_retries(1);
  job.retries_used = 1;
  const auto retry = retry_of(job, ended_with({.lost = true}), {});
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->cost, job::Retry::Cost::kNone);
}

TEST(Retry, TheFirstRuleThatMatchesDecides) {
  const Job job =
      job_with_retries(3, {{.exit_code = 42, .action = Action::kFail},
                           {.log_pattern = "CUDA error.*ECC", .action = Action::kAvoidNode},
                           {.exit_code = 137, .action = Action::kRetry}});
  EXPECT_FALSE(retry_of(job, ended_with({.code = 42}), {"CUDA error: ECC"}));

  const auto elsewhere = retry_of(job, ended_with({.code = 1}), {"x", "a CUDA error: ECC came"});
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->cost, job::Retry::Cost::kAvoidsNode);
  EXPECT_EQ(elsewhere->node, "n1");

  const auto killed = retry_of(job, ended_with({.signal = 9}), {});
  ASSERT_TRUE(killed);
  EXPECT_EQ(words::sentence(*killed), "the rule for exit code 137: retry 1 of 3");
}

TEST(Retry, ARuleMayBeForARangeOfExitCodes) {
  const Job job =
      job_with_retries(3, {{.exit_code = 1, .last_exit_code = 127, .action = Action::kFail},
                           {.exit_code = 128, .last_exit_code = 255, .action = Action::kRetry}});
  for (const int code : {1, 2, 127}) EXPECT_FALSE(retry_of(job, ended_with({.code = code}), {}));
  const auto killed = retry_of(job, ended_with({.signal = 9}), {});
  ASSERT_TRUE(killed);
  EXPECT_EQ(words::sentence(*killed), "the rule for exit code 137: retry 1 of 3");
}

TEST(Retry, ARuleNeedsBothItsCodeAndItsPattern) {
  const Job job =
      job_with_retries(0, {{.exit_code = 7, .log_pattern = "x", .action = Action::kAvoidNode}});
  EXPECT_FALSE(retry_of(job, ended_with({.code = 7}), {"y"}));
  EXPECT_FALSE(retry_of(job, ended_with({.code = 8}), {"x"}));
  EXPECT_TRUE(retry_of(job, ended_with({.code = 7}), {"x"}));
}

TEST(Retry, ReportsTheRulesOfAnEarlierVersionThatMatchNothing) {
  const Job job =
      job_with_retries(1, {{.exit_code = 7}, {.log_pattern = "(?=x)"}, {.log_pattern = "z+"}});

  EXPECT_FALSE(retry_by_rules(job, ended_with({.code = 1}), {"(?=x)"}));
  EXPECT_EQ(refused_rules(job),
            (std::vector<base::Fault>{{.field = "scheduling.retry_rules[1].log_pattern",
                                       .what = "'(?=x)' contains a lookahead, (?= or (?!, which is "
                                               "not supported"}}));
}

TEST(Retry, WaitsLongerEachTimeUpToAMinute) {
  using std::chrono::milliseconds;
  EXPECT_EQ(backoff(1), milliseconds(0));
  EXPECT_EQ(backoff(2), milliseconds(1000));
  EXPECT_EQ(backoff(4), milliseconds(4000));
  EXPECT_EQ(backoff(1000), milliseconds(60'000));
}

}  // namespace
namespace {

using job::Phase;

TEST(RefusedPort, IsFoundInTheWordsOfThoseThatBindPorts) {
  const struct {
    std::string line;
    std::set<int> named;
  } cases[] = {
      {"OSError: [Errno 98] Address already in use", {}},
      {"OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8080): address "
       "already in use",
       {8080}},
      {"Error: listen EADDRINUSE: address already in use :::3000", {3000}},
      {"RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
       "already in use). The server socket has failed to bind to 0.0.0.0:29501 (errno: 98 - "
       "Address already in use).",
       {29500, 29501}},
      {"DistNetworkError: The server socket has failed to listen on any local network address. "
       "port: 29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
       {29500}},
      {"E0000 00:00:1700000000.123456 4242 server_chttp2.cc:1040] Failed to add port to server: No "
       "address added out of total 1 resolved for 'worker-0:31234'",
       {31234}},
      {"2026-01-31 10:11:12.345678: E grpc_server_lib.cc:2606] UNKNOWN: Could not start gRPC "
       "server",
       {}},
      {"bind to port 8080: Address already in use", {8080}},
      {"bind to port 99: Address already in use", {}},
  };
  for (const auto& known : cases) {
    const auto refused = refused_port_in({"epoch 1", known.line, "bye"});
    ASSERT_TRUE(refused) << known.line;
    EXPECT_EQ(refused->named, known.named) << known.line;
    EXPECT_EQ(refused->line, 1U);
  }
  EXPECT_FALSE(refused_port_in({"connected to worker-0:31234", "Connection refused"}));
  EXPECT_FALSE(refused_port_in({}));
}

TEST(RefusedPort, IsNotFoundLongBeforeTheEnd) {
  std::vector<std::string> lines(60, "epoch");
  lines[2] = "Address already in use; the next port is tried";

  EXPECT_FALSE(refused_port_in(lines));
}

/// A worker that failed a second after its start.
struct Failed {
  job::Job job{.attempt = 1};
  job::Task culprit{.name = "worker-0",
                    .started = base::Time(std::chrono::seconds(100)),
                    .ended = base::Time(std::chrono::seconds(101))};
  std::vector<std::string> lines{"bind to 0.0.0.0:31234: Address already in use"};
  std::set<int> chosen{31234, 31235};

  std::optional<std::string> outcome() const {
    const auto abandoned = start_under_other_ports(job, culprit, lines, chosen);
    return abandoned ? std::optional(words::sentence(job::Fact(*abandoned))) : std::nullopt;
  }
};

TEST(OtherPorts, AreUsedByAJobWhosePortWasTakenBeforeItBoundIt) {
  EXPECT_EQ(Failed().outcome(),
            "another process took port 31234 of worker-0 before its program could listen on it; "
            "the job restarts with other ports");
}

TEST(OtherPorts, AreTriedIfTheProgramDoesNotNameThePort) {
  Failed failed;
  failed.lines = {"OSError: [Errno 98] Address already in use"};

  EXPECT_TRUE(failed.outcome()->starts_with("another process took a port of worker-0"));
}

TEST(OtherPorts, AreOfNoUseToAPortOfTheProgramsOwnChoice) {
  Failed failed;
  failed.lines = {"bind to 0.0.0.0:8080: Address already in use"};
  EXPECT_FALSE(failed.outcome());

  failed.lines = {"OSError: [Errno 98] Address already in use"};
  failed.chosen.clear();
  EXPECT_FALSE(failed.outcome());
}

TEST(OtherPorts, AreNotTheCauseOfAnotherFailureNorOfALateOne) {
  Failed failed;
  failed.lines = {"ValueError: nan"};
  EXPECT_FALSE(failed.outcome());

  Failed late;
  late.culprit.ended = *late.culprit.started + std::chrono::hours(1);
  EXPECT_FALSE(late.outcome());
}

TEST(OtherPorts, AreTriedNoMoreOftenThanAJobIsStarted) {
  Failed failed;
  failed.job.attempt = kStartAttempts;
  EXPECT_FALSE(failed.outcome());

  failed.job.restarts = 1;  // for another reason
  EXPECT_TRUE(failed.outcome());
}

// --- the controller

class TakenPorts : public Scheduling {
 protected:
  static job::JobSpec cluster(const std::string& name) {
    job::JobSpec spec = single(name, "default", 0);
    spec.kind = job::Kind::kGrpc;
    spec.workers = 1;
    return spec;
  }

  /// The worker fails right after its start and prints these words.
  void fail_worker(const std::string& name, const std::string& words) {
    engine_.logs["worker-0"] = words + "\n";
    engine_.end_for_good(gang(name), "worker-0", {.code = 1});
    settle();
  }

  int port_of_worker(const std::string& name) {
    return engine_.plans.at({gang(name), "worker-0"}).serves.at(0).port;
  }
};

TEST_F(TakenPorts, AJobStartsAgainWithOtherPortsAndNoRetryIsCounted) {
  submit(cluster("tf"));
  const int port = port_of_worker("tf");

  fail_worker("tf", "bind to 0.0.0.0:" + std::to_string(port) + ": Address already in use");

  EXPECT_EQ(job("tf").attempt, 2);
  EXPECT_EQ(job("tf").restarts, 0);
  EXPECT_EQ(job("tf").retries_used, 0);
  EXPECT_EQ(job("tf").phase, Phase::kRunning);
  EXPECT_NE(port_of_worker("tf"), port);
  EXPECT_TRUE(noted("tf", "took port " + std::to_string(port) + " of worker-0"));
}

TEST_F(TakenPorts, AJobThatFindsNoFreePortFailsAndNamesThePort) {
  submit(cluster("tf"));

  std::string words;
  for (int i = 0; i < kStartAttempts; ++i) {
    EXPECT_EQ(job("tf").attempt, i + 1);
    const std::string port = std::to_string(port_of_worker("tf"));
    words = "port " + port + " is in use by another program";
    fail_worker("tf", "bind to 0.0.0.0:" + port + ": Address already in use");
  }

  EXPECT_EQ(job("tf").phase, Phase::kFailed);
  EXPECT_EQ(job("tf").failure->task, "worker-0");
  EXPECT_NE(words::sentence(job("tf").failure->cause).find(words), std::string::npos)
      << job("tf").failure->cause;
}

TEST_F(TakenPorts, AProgramThatChoosesItsPortFailsAtOnceAndNamesThePort) {
  submit(cluster("tf"));

  fail_worker("tf", "bind to 0.0.0.0:8080: Address already in use");

  EXPECT_EQ(job("tf").attempt, 1);
  EXPECT_EQ(job("tf").phase, Phase::kFailed);
  EXPECT_NE(
      words::sentence(job("tf").failure->cause).find("port 8080 is in use by another program"),
      std::string::npos)
      << job("tf").failure->cause;
}

}  // namespace
}  // namespace muster::control

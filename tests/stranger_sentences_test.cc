// The scheduler's reasons name the jobs and projects that hold the resources that a job needs, and
// the job for which it was evicted. This test lets the scheduler produce such reasons: jobs of four
// projects compete for one cluster, with random submissions and ends. A member of the project green
// requests everything about its jobs, and must not receive a name of the other projects. An admin
// requests the same, which shows that the reasons did contain those names.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "api/wire.h"
#include "team_server.h"

namespace muster::server {
namespace {

using access::Role;

/// Texts with the names of other projects. An admin must receive each of them at least once.
const std::vector<std::string> kTellingWords{"was evicted for 'quicksilver",
                                             "which claims its share: project green uses",
                                             "is moved so that 'quicksilver",
                                             "reserved for 'quicksilver",
                                             "held by job: 'quicksilver",
                                             "held by project: velvet",
                                             "project umbrella (above green) has a limit of",
                                             "project umbrella (above green) has a quota of",
                                             "below project umbrella, velvet holds",
                                             "jobs of project umbrella",
                                             "starts when 2 other jobs",
                                             "of other jobs are still stopping there",
                                             "'quicksilver-"};

class RandomCluster : public TeamServer {
 public:
  explicit RandomCluster(unsigned seed) : dice_(seed) {
    engine().set_nodes({engine::fake_node("gpu-1", 4), engine::fake_node("gpu-2", 4),
                        engine::fake_node("gpu-3", 4)});
    settle();
    add_project("umbrella", "", 6, 10);
    add_project("green", "umbrella", 3);
    add_project("velvet", "umbrella", 5);
    add_project("velvet-lab", "", 4);
    add_user("sam", {{"green", Role::kMember}});
    add_user("rudi", {}, Role::kAdmin);
    stranger_ = token({.user = "sam"});
    admin_ = token({.user = "rudi"});
  }

  void step() {
    clock().advance(std::chrono::seconds(one_in(8) ? 900 : 20));
    if (one_in(2)) submit_one();
    if (one_in(4)) end_one();
    if (one_in(3)) engine().stops_obey = !engine().stops_obey;
    if (engine().stops_obey) end_what_is_to_leave();
    settle();
  }

  /// The answers to all requests about jobs of green, with this token.
  std::vector<http::Response> answers(const std::string& token) {
    std::vector<http::Response> answers;
    const auto add = [&](Ask question) {
      question.token = token;
      answers.push_back(ask(question));
    };
    add({.path = "/v1/jobs", .query = {{"project", "green"}}});
    for (const job::Job* job : controller().jobs().list()) {
      if (job->spec.project != "green" || job::is_final(job->phase)) continue;
      add({.path = "/v1/jobs/" + job->id});
      add({.path = "/v1/jobs/" + job->id + "/explain"});
    }
    for (const int gpus : {1, 4, 12}) {
      for (const auto purpose : {job::Purpose::kTrain, job::Purpose::kBuild}) {
        job::JobSpec spec = single_job("green-next", "green", gpus);
        spec.scheduling.purpose = purpose;
        add({.method = "POST",
             .path = "/v1/jobs",
             .query = {{"dry_run", "true"}},
             .body = api::spec_to_json(spec)});
      }
    }
    return answers;
  }

  std::vector<http::Response> of_stranger() {
    std::vector<http::Response> all = answers(stranger_);
    for (const char* const path : {"/v1/queue", "/v1/nodes", "/v1/projects", "/v1/jobs"}) {
      all.push_back(ask({.path = path, .token = stranger_}));
    }
    return all;
  }
  std::vector<http::Response> of_admin() { return answers(admin_); }

 private:
  bool one_in(unsigned n) { return dice_() % n == 0; }

  void submit_one() {
    const bool mine = one_in(2);
    const std::string project = mine ? "green" : one_in(4) ? "velvet-lab" : "velvet";
    job::JobSpec spec = single_job((mine ? "green-" : "quicksilver-") + std::to_string(++count_),
                                   project, 1 + static_cast<int>(dice_() % 4));
    if (one_in(3)) spec.scheduling.purpose = job::Purpose::kBuild;
    if (one_in(3)) spec.scheduling.time_limit = std::chrono::hours(1);
    if (one_in(4)) {
      spec.kind = job::Kind::kMpi;
      spec.workers = 2;
    }
    // A job that can never run is refused, which is a valid outcome.
    static_cast<void>(controller().submit(spec, "", {.user = "sam"}));
    settle();
  }

  void end_tasks(const job::Job& job) {
    const engine::GangId gang{job.id, job.attempt};
    const auto running = engine().running;
    for (const auto& [of, task] : running) {
      if (of == gang) engine().end(gang, task, {.signal = 15, .stopped = true});
    }
  }

  void end_one() {
    for (const job::Job* job : controller().jobs().list()) {
      if (job->phase != job::Phase::kRunning || !one_in(3)) continue;
      const engine::GangId gang{job->id, job->attempt};
      return engine().end(gang, job->tasks.front().name, {});
    }
  }

  void end_what_is_to_leave() {
    for (const job::Job* job : controller().jobs().list()) {
      if (job->eviction) end_tasks(*job);
    }
  }

  std::mt19937 dice_;
  int count_ = 0;
  std::string stranger_;
  std::string admin_;
};

TEST(StrangerSentences, NoneContainsANameOfAnotherProject) {
  std::map<std::string, int> told;
  constexpr unsigned kClusters = 12;
  constexpr int kSteps = 40;
  for (unsigned seed = 1; seed <= kClusters; ++seed) {
    RandomCluster cluster(seed);
    for (int step = 0; step < kSteps; ++step) {
      cluster.step();
      for (const http::Response& answer : cluster.of_admin()) {
        for (const std::string& words : kTellingWords) {
          if (answer.body.find(words) != std::string::npos) ++told[words];
        }
      }
      for (const http::Response& answer : cluster.of_stranger()) {
        ASSERT_LT(answer.status, 404) << answer.body;
        for (const char* const word : {"velvet", "quicksilver", "umbrella"}) {
          ASSERT_EQ(answer.body.find(word), std::string::npos)
              << "seed " << seed << ", step " << step << ": " << answer.body;
        }
      }
    }
  }
  for (const std::string& words : kTellingWords) {
    EXPECT_GT(told[words], 0) << "no answer to an admin contains: " << words;
  }
}

}  // namespace
}  // namespace muster::server

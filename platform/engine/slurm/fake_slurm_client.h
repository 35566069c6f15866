// For tests: a fake Slurm whose jobs a test moves through their states by hand. It records the
// requests; answers come in the next turn of the loop.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

class FakeSlurmClient : public SlurmClient {
 public:
  /// Outlives the client, as a controller does.
  struct Cluster {
    std::map<uint64_t, ListedJob> jobs;
    std::vector<ListedJob> past;  ///< the jobs in the accounting database
    std::vector<ListedNode> nodes;
    std::vector<Submission> submitted;
    std::vector<std::vector<uint64_t>> cancelled;
    int listings = 0;
    int node_listings = 0;
    int past_listings = 0;
    uint64_t next_id = 17;

    bool is_away = false;
    bool holds_listings = false;              ///< keeps the answers with the jobs back
    std::vector<std::function<void()>> held;  ///< these answers, which a test gives by hand
    bool answers_nodes = true;                ///< else requests for the nodes wait in held_nodes
    std::vector<Then<std::vector<ListedNode>>> held_nodes;
    std::optional<base::Error> nodes_error;   ///< the answer if the nodes may not be listed
    std::optional<base::Error> past_error;    ///< the answer while the database does not answer
    std::optional<base::Error> submit_error;  ///< the answer to the next submit
    bool accepts_despite_error = false;       ///< accepts the job, and answers with that error
    bool cancel_ends = true;                  ///< a cancelled job is over at once

    ListedJob& job(uint64_t id) { return jobs.at(id); }
    void run(uint64_t id, std::vector<std::string> names) {
      job(id).state = JobState::kRunning;
      job(id).state_text = "RUNNING";
      job(id).reason.clear();
      job(id).nodes = std::move(names);
    }
    void end(uint64_t id, JobState state, std::string text) {
      job(id).state = state;
      job(id).state_text = std::move(text);
    }
    void queue_again(uint64_t id) {
      job(id).state = JobState::kPending;
      job(id).state_text = "PENDING";
      job(id).reason = "BeginTime";
      job(id).nodes.clear();
      ++job(id).restarts;
    }
  };

  FakeSlurmClient(base::EventLoop& loop, Cluster& cluster) : loop_(loop), cluster_(cluster) {}

  void submit(Submission submission, Then<uint64_t> then) override {
    if (cluster_.is_away) return deliver(then, base::Result<uint64_t>(away()));
    const auto error = std::exchange(cluster_.submit_error, std::nullopt);
    cluster_.submitted.push_back(submission);
    const uint64_t id = cluster_.next_id;
    if (!error || cluster_.accepts_despite_error) {
      ++cluster_.next_id;
      cluster_.jobs[id] = {.id = id,
                           .comment = submission.comment,
                           .state = JobState::kPending,
                           .state_text = "PENDING",
                           .reason = "Priority",
                           .nodes = {},
                           .partition = submission.partition,
                           .account = submission.account,
                           .qos = submission.qos};
    }
    deliver(then, error ? base::Result<uint64_t>(*error) : base::Result<uint64_t>(id));
  }

  void jobs(Then<std::vector<ListedJob>> then) override {
    ++cluster_.listings;
    if (cluster_.is_away) return deliver(then, base::Result<std::vector<ListedJob>>(away()));
    std::vector<ListedJob> all;
    for (const auto& [id, job] : cluster_.jobs) all.push_back(job);
    if (cluster_.holds_listings) {
      return cluster_.held.push_back([then, all = std::move(all)] { then(all); });
    }
    deliver(then, base::Result<std::vector<ListedJob>>(std::move(all)));
  }

  void past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) override {
    ++cluster_.past_listings;
    if (cluster_.past_error) {
      return deliver(then, base::Result<std::vector<ListedJob>>(*cluster_.past_error));
    }
    std::vector<ListedJob> found;
    for (const ListedJob& job : cluster_.past) {
      if (std::find(ids.begin(), ids.end(), job.id) != ids.end()) found.push_back(job);
    }
    deliver(then, base::Result<std::vector<ListedJob>>(std::move(found)));
  }

  void cancel(std::vector<uint64_t> ids, Then<void> then) override {
    if (cluster_.is_away) return deliver(then, base::Result<void>(away()));
    cluster_.cancelled.push_back(ids);
    for (const uint64_t id : ids) {
      const auto found = cluster_.jobs.find(id);
      if (found == cluster_.jobs.end() || !cluster_.cancel_ends) continue;
      if (!is_over(found->second.state)) cluster_.end(id, JobState::kCancelled, "CANCELLED");
    }
    deliver(then, base::Result<void>{});
  }

  void nodes(Then<std::vector<ListedNode>> then) override {
    ++cluster_.node_listings;
    if (!cluster_.answers_nodes) return cluster_.held_nodes.push_back(std::move(then));
    if (cluster_.is_away) return deliver(then, base::Result<std::vector<ListedNode>>(away()));
    if (cluster_.nodes_error) {
      return deliver(then, base::Result<std::vector<ListedNode>>(*cluster_.nodes_error));
    }
    deliver(then, base::Result<std::vector<ListedNode>>(cluster_.nodes));
  }

  void facts(Then<ClientFacts> then) override {
    deliver(then, base::Result<ClientFacts>(
                      ClientFacts{.way = "a test", .version = "22.05.8", .api = "none"}));
  }

 private:
  static base::Error away() {
    return {.code = base::ErrorCode::kUnavailable,
            .what = "Unable to contact slurm controller (connect failure)"};
  }

  template <typename T>
  void deliver(const Then<T>& then, base::Result<T> answer) {
    loop_.post([weak = std::weak_ptr(alive_), then, answer = std::move(answer)] {
      if (weak.lock()) then(answer);
    });
  }

  base::EventLoop& loop_;
  Cluster& cluster_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine::slurm

#include "engine/kubernetes/cluster_news.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json_text.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "engine/kubernetes/gang_pods.h"
#include "engine/kubernetes/test_fake_api_server.h"

namespace muster::engine::kubernetes {
namespace {

/// The parts of a Kubernetes engine, which get the news of a watch from the test.
class NewsOfCluster : public testing::Test, protected base::TestLoop {
 protected:
  NewsOfCluster() {
    tasks_.lender.cluster = "Kubernetes";
    tasks_.lender.look_soon = [] {};
    tasks_.lender.looks = [] { return uint64_t{0}; };
    tasks_.lender.on_change = [] {};
    tasks_.lender.may_explain = [](const lent::GangPointer&, const TaskPointer&) { return false; };
    tasks_.lender.on_silence = [](const lent::GangPointer&, const TaskPointer&) { return true; };
    const bool is_first = tasks_.reports.listen([this](const TaskReport& report) {
      if (const auto* const end = std::get_if<TaskEnded>(&report.what)) end_ = *end;
      look();
    });
    EXPECT_TRUE(is_first);
    server_.on(creation_, http::Response{.status = 201,
                                         .body = R"({"metadata":{"name":"x","uid":"second"}})"});
    server_.on(deletion_of("main"), deleted());
    server_.on(deletion_of("worker-1"), deleted());
    look_often();
  }

  static KubernetesOptions options() {
    KubernetesOptions options;
    options.pods.owner = "owner";
    options.pods.space = "lab";
    options.pods.node_image = "muster-node:1";
    return options;
  }
  lent::LentOptions lent_options() const {
    lent::LentOptions lent;
    lent.folder = folder_ / "jobs";
    return lent;
  }
  static http::Response deleted() { return {.body = R"({"kind":"Status","status":"Success"})"}; }
  std::string deletion_of(const std::string& task) const {
    return "DELETE /api/v1/namespaces/lab/pods/" + pod_name("owner", id_, task);
  }

  /// For what the thread of the fake changes.
  void look_often() {
    timer_ = loop().after(std::chrono::milliseconds(5), [this] {
      look();
      look_often();
    });
  }

  /// A gang whose main task runs, as far as its record shows, and whose worker-1 was to join.
  PodGangPointer gang_with_worker(bool has_started = true) {
    const PodGangPointer gang = gangs_.add(id_, rsh::Key{});
    gang->uid = "owner-uid";
    gangs_.add_task(gang, "main");
    gangs_.add_task(gang, "worker-1");
    gang->seat_of(*gang->task("main")).started = has_started;
    return gang;
  }
  OwnPod pod(const std::string& task, const std::string& uid) const {
    OwnPod own{.gang = gang_name("owner", id_), .task = task, .facts = {}};
    own.facts.name = pod_name("owner", id_, task);
    own.facts.uid = uid;
    own.facts.owner = "owner-uid";
    own.facts.node = "n1";
    own.facts.phase = "Running";
    return own;
  }
  OwnPod pod_being_deleted(const std::string& task, const std::string& uid) const {
    OwnPod own = pod(task, uid);
    own.facts.is_being_deleted = true;
    return own;
  }

  std::shared_ptr<void> prepare_worker() {
    PodJob job;
    job.gang = id_;
    job.name = "train";
    PodTask task;
    task.task = task.hostname = "worker-1";
    task.node = "n1";
    task.image = "pytorch:2";
    done_.reset();
    return pods_.prepare(job, {task}, nullptr, into(done_));
  }

  const std::string creation_ = "POST /api/v1/namespaces/lab/pods";
  const GangId id_{.job_id = "job", .attempt = 1};
  base::TestFolder folder_;
  FakeApiServer server_;
  const KubernetesOptions options_ = options();
  ApiClient client_{loop(), std::make_unique<FakeAccess>(server_.socket()),
                    ApiOptions{.patience = std::chrono::milliseconds(0)}};
  lent::LentTasks tasks_{loop(), lent_options(), pod_table_options(folder_ / "jobs")};
  PodGangTable gangs_{tasks_.gangs, "owner"};
  ClusterView view_{loop(), client_, options_.nodes};
  PodLines lines_{loop(), client_, "lab", "owner", 0, tasks_};
  Preparations preparations_{
      loop(),
      std::chrono::hours(1),
      {.outage = [] { return std::nullopt; },
       .given_up = [this](const PodGangPointer& gang,
                          const std::vector<std::string>& names) { pods_.give_up(gang, names); }}};
  GangObjects objects_{loop(),
                       client_,
                       options_.pods,
                       gangs_,
                       std::chrono::hours(1),
                       {.admit = [](const PodGangPointer&) { return true; },
                        .brief_of = [](const PodGang&) { return std::string("the brief"); },
                        .changed =
                            [this](const PodGangPointer& gang) {
                              preparations_.look(gang);
                              look();
                            }}};
  GangPods pods_{options_.pods,
                 {.loop = loop(),
                  .gangs = gangs_,
                  .view = view_,
                  .objects = objects_,
                  .preparations = preparations_}};
  PodLosses losses_{loop(), gangs_, tasks_, nullptr};
  ClusterNews news_{options_,
                    {.gangs = gangs_,
                     .view = view_,
                     .lines = lines_,
                     .preparations = preparations_,
                     .losses = losses_,
                     .objects = objects_}};
  const ClusterView::Hooks hooks_ = news_.hooks();
  std::optional<base::Result<void>> done_;
  std::optional<TaskEnded> end_;
  base::EventLoop::Interest timer_;
};

TEST_F(NewsOfCluster, ThePodOfAWorkerThatWasToJoinWhenTheServerDiedIsDeleted) {
  const PodGangPointer gang = gang_with_worker();

  hooks_.on_pod(pod("main", "1"));
  hooks_.on_pod(pod("worker-1", "2"));
  hooks_.on_synced();

  ASSERT_TRUE(run_until([&] { return server_.count(deletion_of("worker-1")) == 1; }));
  EXPECT_EQ(server_.count(deletion_of("main")), 0U);
  EXPECT_EQ(base::parse_json(server_.asked().back().body).at("preconditions").at("uid"), "2")
      << "a later pod of the same name must stay";
  EXPECT_TRUE(gang->pods.at("main").facts);
  EXPECT_FALSE(gang->pods.at("worker-1").facts);
  EXPECT_FALSE(end_);
}

TEST_F(NewsOfCluster, AWorkerThatIsPreparedGetsAPodAlthoughItHadNoneWhenTheServerStarted) {
  const PodGangPointer gang = gang_with_worker();
  hooks_.on_pod(pod("main", "1"));
  hooks_.on_synced();

  const auto preparation = prepare_worker();

  ASSERT_TRUE(run_until([&] { return done_ || gang->pods.at("worker-1").is_created; }));
  EXPECT_FALSE(done_);
}

TEST_F(NewsOfCluster, TheFailedDeletionOfAPodIsTriedAgain) {
  const PodGangPointer gang = gang_with_worker();
  server_.on(deletion_of("worker-1"), {[](const http::Request&) {
                                         return FakeApiServer::refusal(500, "InternalError",
                                                                       "leader changed");
                                       },
                                       [](const http::Request&) { return deleted(); }});

  hooks_.on_pod(pod("worker-1", "2"));

  EXPECT_TRUE(run_until([&] { return server_.count(deletion_of("worker-1")) == 2; }));
}

TEST_F(NewsOfCluster, AQueuedGangKeepsItsPodsWhenTheServerIsRestarted) {
  const PodGangPointer gang = gang_with_worker(false);

  hooks_.on_pod(pod("main", "1"));
  hooks_.on_pod(pod("worker-1", "2"));

  EXPECT_TRUE(gang->pods.at("main").facts);
  EXPECT_TRUE(gang->pods.at("worker-1").facts);
}

TEST_F(NewsOfCluster, AWorkerThatWasGivenUpCanBePreparedAgain) {
  const PodGangPointer gang = gang_with_worker();
  hooks_.on_pod(pod("main", "1"));
  auto preparation = prepare_worker();
  ASSERT_TRUE(run_until([&] { return gang->pods.at("worker-1").is_created; }));
  hooks_.on_pod(pod("worker-1", "first"));
  preparation.reset();  // gives the pod up
  ASSERT_TRUE(run_until([&] { return server_.count(deletion_of("worker-1")) == 1; }));

  hooks_.on_pod(pod_being_deleted("worker-1", "first"));
  const auto again = prepare_worker();
  // Its change was on the way before the deletion.
  hooks_.on_pod(pod("worker-1", "first"));
  hooks_.on_pod(pod_being_deleted("worker-1", "first"));
  hooks_.on_pod_gone(pod_being_deleted("worker-1", "first"));

  ASSERT_TRUE(run_until([&] { return done_ || gang->pods.at("worker-1").is_created; }));
  EXPECT_FALSE(done_) << done_->error().to_string();
  EXPECT_EQ(gang->pods.at("worker-1").facts->uid, "second");
}

TEST_F(NewsOfCluster, AnEventOfAnEarlierPodOfThisNameIsIgnored) {
  const PodGangPointer gang = gang_with_worker();
  hooks_.on_pod(pod("main", "2"));
  PodEvent event{.pod = pod_name("owner", id_, "main"), .uid = "1", .word = "", .text = ""};

  hooks_.on_warning(event);
  EXPECT_FALSE(gang->pods.at("main").event);

  event.uid = "2";
  hooks_.on_warning(event);
  EXPECT_TRUE(gang->pods.at("main").event);
}

TEST_F(NewsOfCluster, TheFailedDeletionOfAGangWithoutARecordIsTriedAgain) {
  const std::string deletion = "DELETE /api/v1/namespaces/lab/secrets/" + gang_name("owner", id_);
  server_.on(deletion, {[](const http::Request&) {
                          return FakeApiServer::refusal(503, "ServiceUnavailable", "it starts");
                        },
                        [](const http::Request&) { return deleted(); }});
  hooks_.on_pod(pod("main", "1"));

  hooks_.on_synced();

  EXPECT_TRUE(run_until([&] { return server_.count(deletion) == 2; }));
}

// --- a record that cannot be read

class NewsOfUnreadableGang : public NewsOfCluster, public testing::WithParamInterface<bool> {
 protected:
  /// main was started, and worker-1 was not.
  void load() {
    const auto attempt = folder_ / "jobs/job/1";
    ASSERT_TRUE(base::make_private_folder(attempt / "main"));
    if (GetParam()) {
      std::filesystem::create_symlink(record_, record_);  // a read of it fails
    } else {
      ASSERT_TRUE(base::write_file(record_, "x"));
    }
    ASSERT_TRUE(gangs_.load());
  }

  const std::filesystem::path record_ = folder_ / "jobs/job/1" / kPodRecordFile;
};

TEST_P(NewsOfUnreadableGang, ItsTasksContinue) {
  load();
  const PodGangPointer gang = gangs_.find(id_);
  ASSERT_NE(gang, nullptr);
  EXPECT_EQ(tasks_.adopt(id_, "main"), AdoptionResult::kRunning);
  EXPECT_EQ(tasks_.adopt(id_, "worker-1"), AdoptionResult::kNothing);

  hooks_.on_pod(pod("main", "1"));
  hooks_.on_synced();
  gangs_.save(gang);

  Call call;
  server_.on("GET /readyz", http::Response{.body = "ok"});
  ASSERT_TRUE(answer<std::string>([&](auto then) { call = client_.get_path("/readyz", then); }));
  EXPECT_EQ(server_.asked().size(), 1U) << "nothing is deleted";
  EXPECT_FALSE(end_);
  if (GetParam()) return;
  EXPECT_EQ(*base::read_file(record_, 100), "x") << "a later server may read it";
}

TEST_P(NewsOfUnreadableGang, ATaskWhosePodIsGoneIsLost) {
  load();
  ASSERT_EQ(tasks_.adopt(id_, "main"), AdoptionResult::kRunning);
  hooks_.on_pod(pod("main", "1"));
  hooks_.on_synced();

  hooks_.on_pod_gone(pod("main", "1"));

  ASSERT_TRUE(run_until([&] { return end_.has_value(); }));
  EXPECT_TRUE(end_->status.lost);
}

TEST_P(NewsOfUnreadableGang, ATaskWithoutAPodIsLost) {
  load();
  ASSERT_EQ(tasks_.adopt(id_, "main"), AdoptionResult::kRunning);

  hooks_.on_synced();

  ASSERT_TRUE(run_until([&] { return end_.has_value(); }));
  EXPECT_TRUE(end_->status.lost);
}

/// Otherwise its pods would be deleted, as if none of its tasks had started.
TEST_F(NewsOfCluster, GangsAreNotLoadedFromAFolderThatCannotBeListed) {
  const auto jobs = folder_ / "jobs";
  ASSERT_TRUE(base::make_private_folder(jobs));
  std::filesystem::create_symlink("job", jobs / "job");  // a listing of it fails

  const auto loaded = gangs_.load();

  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("cannot list '" + (jobs / "job").string() + "'"),
            std::string::npos)
      << loaded.error().what;
}

INSTANTIATE_TEST_SUITE_P(Causes, NewsOfUnreadableGang, testing::Bool(), [](const auto& each) {
  return each.param ? "TheReadFails" : "ItIsNoRecord";
});

}  // namespace
}  // namespace muster::engine::kubernetes
